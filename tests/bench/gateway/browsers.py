"""Browsers by the thousand: load.c, compiled on the spot, under Python's hand."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "load.c"
SOURCES = 20
INFLIGHT = 400


@dataclass(frozen=True)
class Lateness:
    """
    How late the events of a group came, in milliseconds.

    `seconds` are from the first one's publication to the last one's arrival.
    """

    events: int
    timed: int
    seconds: float
    p50: float
    p99: float
    most: float


@dataclass(frozen=True)
class Seen:
    """What browsers say of the time since they were asked before."""

    streaming: int
    failed: int
    lost: int
    gaps: int
    resets: int
    late: list[Lateness]
    least: int
    most: int


class Browsers:
    """One client process and its connections."""

    def __init__(self, process: subprocess.Popen[str], count: int) -> None:
        self._process = process
        self.count = count

    def say(self, order: str) -> None:
        """Give an order; `hear` returns the answer to it."""
        assert self._process.stdin
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()

    def hear(self) -> Seen:
        """Return the answer to the oldest order that was not heard yet."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the load client ended")
        found: dict[str, Any] = json.loads(line)
        return Seen(
            streaming=found["streaming"],
            failed=found["failed"],
            lost=found["lost"],
            gaps=found["gaps"],
            resets=found["resets"],
            late=[
                Lateness(
                    one["events"],
                    one["timed"],
                    one["span_us"] / 1e6,
                    one["p50_us"] / 1e3,
                    one["p99_us"] / 1e3,
                    one["max_us"] / 1e3,
                )
                for one in found["groups"]
            ],
            least=found["least"],
            most=found["most"],
        )

    def open(self) -> Seen:
        """Open all streams."""
        seen = self.ask("open")
        if seen.streaming != self.count:
            raise RuntimeError(f"{self.count - seen.streaming} streams were refused")
        return seen

    def ask(self, order: str) -> Seen:
        """Give an order and return the answer."""
        self.say(order)
        return self.hear()


@contextmanager
def browsers(
    ports: Sequence[int],
    requests: Sequence[tuple[int, bytes]],
    count: int,
    kind: str = "sse",
    *,
    inflight: int = INFLIGHT,
) -> Iterator[Browsers]:
    """Start `count` browsers, which open nothing yet."""
    with tempfile.TemporaryDirectory(prefix="av-load-") as folder:
        file = Path(folder) / "requests"
        file.write_bytes(b"".join(b"%d %d\n%b" % (g, len(text), text) for g, text in requests))
        process = subprocess.Popen(
            [
                *(str(compiled()), ",".join(map(str, ports)), str(SOURCES), str(count)),
                *(str(inflight), str(file), kind),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield Browsers(process, count)
        finally:
            process.kill()
            process.communicate()


def compiled() -> Path:
    """Return the client's program, compiled once for each version of its source."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise RuntimeError("the load client needs a C compiler: apt-get install gcc libc6-dev")
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    program = Path(tempfile.gettempdir()) / f"av-load-{digest}"
    if not program.exists():
        part = program.with_suffix(".part")
        subprocess.run([compiler, "-O2", "-o", str(part), str(SOURCE)], check=True)
        part.rename(program)
    return program
