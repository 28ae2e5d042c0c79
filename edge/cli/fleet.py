"""
The processes of `aivedio up`, as children.

Each is started with a pipe to announce readiness on and with a pipe that closes when we die. One
that dies is started again after a growing pause; one that keeps dying ends the whole. They stop
in the order of the data: first what takes in work, last what shows it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edge import orphan
from edge.backoff import Backoff, pause
from edge.cli.logfiles import last_words, open_log

Say = Callable[[str], None]

READY_WITHIN = 60.0
STOP_WITHIN = 10.0
_FIRST_PAUSE = 0.5
_DEATHS_ALLOWED = 5
_DEATHS_WINDOW = 60.0


class PartFailed(Exception):
    """A process does not run; the text says which, and what it said last."""


@dataclass(frozen=True, slots=True)
class Part:
    """
    One child: its sub-command, what its environment adds, when it stops (low first), and how many
    seconds that may take.
    """

    name: str
    stops: int
    environment: Mapping[str, str] = field(default_factory=dict)
    stops_within: float = STOP_WITHIN


class Fleet:
    """Owns the children; use `start`, then `tend`, then always `stop`."""

    def __init__(
        self,
        parts: Sequence[Part],
        environment: Mapping[str, str],
        logs: Path,
        lock: int,
        say: Say,
        command: Sequence[str] = (sys.executable, "-P", "-m", "edge.cli.app"),
    ) -> None:
        self._say = say
        self._stopping = asyncio.Event()
        self._owned, self._held = os.pipe()
        self._children = [
            _Child(
                [*command, part.name],
                part,
                {**environment, **part.environment},
                logs / f"{part.name}.log",
                (self._owned, lock),
            )
            for part in parts
        ]

    @property
    def pids(self) -> dict[str, int]:
        """The process id of every running child, by name."""
        return {child.part.name: child.pid for child in self._children if child.pid}

    async def start(self) -> None:
        """Start all of them at once and return when every one is ready; raises PartFailed."""
        await _together([child.start() for child in self._children])

    async def tend(self) -> None:
        """Start again what dies, until stopped; raises PartFailed for one that keeps dying."""
        await _together([child.tend(self._say, self._stopping) for child in self._children])

    async def stop(self) -> None:
        """Stop every child, in order; one that does not listen is killed."""
        self._stopping.set()
        for turn in sorted({child.part.stops for child in self._children}):
            leaving = [child for child in self._children if child.part.stops == turn]
            await asyncio.gather(*(child.stop(self._say) for child in leaving))
        for descriptor in (self._held, self._owned):
            os.close(descriptor)


class _Child:
    def __init__(
        self,
        command: Sequence[str],
        part: Part,
        environment: Mapping[str, str],
        log: Path,
        held: tuple[int, int],
    ) -> None:
        self.part = part
        self._command = command
        self._environment = environment
        self._log = log
        self._owner, self._lock = held
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process else None

    async def start(self) -> None:
        """Start the child and return once it is ready."""
        reading, writing = os.pipe()
        try:
            try:
                await self._spawn(writing)
            finally:
                os.close(writing)
            ready = await _first_byte(reading, READY_WITHIN)
        finally:
            os.close(reading)
        if not ready:
            raise PartFailed(f"{self.part.name} did not become ready:\n{last_words(self._log)}")

    async def tend(self, say: Say, stopping: asyncio.Event) -> None:
        deaths: deque[float] = deque(maxlen=_DEATHS_ALLOWED)
        backoff = Backoff(_FIRST_PAUSE)
        while not stopping.is_set():
            assert self._process is not None
            status = await self._process.wait()
            if stopping.is_set():
                return
            now = time.monotonic()
            if len(deaths) == _DEATHS_ALLOWED and now - deaths[0] < _DEATHS_WINDOW:
                raise PartFailed(f"{self.part.name} keeps dying:\n{last_words(self._log)}")
            if deaths and now - deaths[-1] > _DEATHS_WINDOW:
                backoff.reset()
            deaths.append(now)
            say(f"{self.part.name} ended (status {status}), starting it again")
            if await pause(backoff.next(), stopping):
                return
            try:
                await self.start()
            except PartFailed:
                # It counts as one more death above, unless it hangs; then it is ended here.
                await self._end(signal.SIGKILL, STOP_WITHIN)
            else:
                say(f"{self.part.name} is ready again")

    async def stop(self, say: Say) -> None:
        within = self.part.stops_within
        if not await self._end(signal.SIGTERM, within):
            say(f"{self.part.name} did not stop in {within:.0f} s, killing it")
            await self._end(signal.SIGKILL, STOP_WITHIN)

    async def _spawn(self, ready: int) -> None:
        with open_log(self._log) as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **self._environment,
                    "AIVEDIO_READY_FD": str(ready),
                    "AIVEDIO_OWNER_FD": str(self._owner),
                },
                pass_fds=[ready, self._owner, self._lock],
                # Ctrl-C in the terminal is for us; we stop them in order.
                start_new_session=True,
                preexec_fn=orphan.dies_with(os.getpid(), signal.SIGTERM),
            )

    async def _end(self, number: signal.Signals, within: float) -> bool:
        process = self._process
        if process is None or process.returncode is not None:
            return True
        try:
            # Not process.send_signal: it polls, and so takes the status from under asyncio.
            os.kill(process.pid, number)
        except ProcessLookupError:
            return True
        try:
            async with asyncio.timeout(within):
                await process.wait()
        except TimeoutError:
            return False
        return True


async def _together(work: Sequence[Coroutine[None, None, None]]) -> None:
    """Await all of `work`; the first failure ends the rest and is what is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _first_byte(reading: int, within: float) -> bool:
    """Return True at the first byte, False at the end of the pipe or of the time."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(reading, readable.set)
    try:
        async with asyncio.timeout(within):
            await readable.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(reading)
    return os.read(reading, 1) != b""
