"""
The process between `aivedio up` and its servers: they live exactly as long as their owner.

Its standard input is a pipe that the owner holds. The first line is the JSON of a `Job`; then
the end of the pipe, however it came about, means "stop". It answers on standard output with one
JSON object a line: {"running": name, "pid": n}, {"ended": name, "status": n}, {"gave_up": name}.

A server that dies is started again, a few times. Should this process itself be killed, the
kernel tells the servers to stop.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from edge import orphan

_RESTARTS = 5
_RESTART_PAUSE = 0.5
_LIVED_LONG = 60.0
# Owner gone: clean if that is quick, else at once; a restart recovers from either.
_PATIENCE_ORPHANED = 0.3
_PATIENCE_ASKED = 10.0
_PATIENCE_LAST = 1.0


@dataclass(frozen=True, slots=True)
class Server:
    """One program to keep running, and the signals that stop it: politely, and at once."""

    name: str
    argv: list[str]
    log: str
    stop: int
    halt: int


@dataclass(frozen=True, slots=True)
class Job:
    """What to run, as whom, holding which lock, and what to remove after the end."""

    servers: list[Server]
    popen: dict[str, Any]
    lock: int
    remove: list[str] = field(default_factory=list)

    def encode(self) -> bytes:
        """Return this job as the line that `main` reads."""
        return json.dumps(asdict(self)).encode() + b"\n"


class _Running:
    def __init__(self, server: Server, job: Job) -> None:
        self.server = server
        self._job = job
        self._deaths = 0
        self._since = 0.0
        self.due: float | None = None
        self.start()

    def start(self) -> None:
        """Start the server as the job's account, holding the folder's lock."""
        self.due = None
        self._since = time.monotonic()
        with open(self.server.log, "ab") as log:
            self.process = subprocess.Popen(
                self.server.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,
                pass_fds=[self._job.lock],
                preexec_fn=orphan.dies_with(os.getpid(), signal.Signals(self.server.halt)),
                **self._job.popen,
            )
        _tell(running=self.server.name, pid=self.process.pid)

    def tend(self) -> bool:
        """Notice a death and start again after a pause; answer False when it dies too often."""
        now = time.monotonic()
        if self.due is None and self.process.poll() is not None:
            _tell(ended=self.server.name, status=self.process.returncode)
            self._deaths = 1 if now - self._since > _LIVED_LONG else self._deaths + 1
            if self._deaths > _RESTARTS:
                return False
            self.due = now + _RESTART_PAUSE * self._deaths
        if self.due is not None and now >= self.due:
            self.start()
        return True

    def signal(self, number: int) -> None:
        """Send `number` unless the server has ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)


def main() -> int:
    """Run one job until the owner closes the pipe or says "stop"."""
    # Ctrl-C is the owner's business; it tells us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = _Asked()
    signal.signal(signal.SIGTERM, asked.on_signal)
    source = os.fdopen(0, "rb", buffering=0)
    line = b""
    while not line.endswith(b"\n"):
        piece = source.read(65536)
        if not piece:
            return 0
        line += piece
    job = _decode(line)
    running: list[_Running] = []
    try:
        for server in job.servers:
            running.append(_Running(server, job))
        asked.clean = _tend(running, source.fileno(), asked)
    finally:
        _stop(running, _PATIENCE_ASKED if asked.clean else _PATIENCE_ORPHANED)
        for path in job.remove:
            shutil.rmtree(Path(path), ignore_errors=True)
    return 0


class _Asked:
    """Whether somebody wants a clean stop."""

    def __init__(self) -> None:
        self.clean = False

    def on_signal(self, _number: int, _frame: object) -> None:
        self.clean = True


def _tend(running: list[_Running], owner: int, asked: _Asked) -> bool:
    """Look after the servers until told to stop; answer whether the stop was asked for."""
    while not asked.clean:
        readable, _, _ = select.select([owner], [], [], 0.2)
        if readable:
            return os.read(owner, 16) == b"stop\n"
        for server in running:
            if not server.tend():
                _tell(gave_up=server.server.name)
                return True
    return True


def _stop(running: list[_Running], patience: float) -> None:
    for step, wait in (("stop", patience), ("halt", _PATIENCE_LAST), ("kill", _PATIENCE_LAST)):
        for server in running:
            server.signal(
                {"stop": server.server.stop, "halt": server.server.halt}.get(step, signal.SIGKILL)
            )
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            if all(server.process.poll() is not None for server in running):
                return
            time.sleep(0.005)


def _decode(line: bytes) -> Job:
    known = json.loads(line)
    return Job(**{**known, "servers": [Server(**server) for server in known["servers"]]})


def _tell(**fields: object) -> None:
    try:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The owner is gone; its end of the other pipe says so too.
        sys.stdout = open(os.devnull, "w")


if __name__ == "__main__":
    sys.exit(main())
