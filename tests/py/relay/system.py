"""The path from the outbox to the browser as real processes, under load, to be broken by tests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import psycopg

from relay.buses import Rocketmq
from tests.py.relay.conftest import CHANGE
from tests.py.support.clusters import Run
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually

PROJECTS = 4
STEPS = ("queued", "running", "running", "running")


class Load:
    """Commits changes of jobs at a steady rate, and knows what must follow from them."""

    def __init__(self, database: str, rate: float) -> None:
        self._session = psycopg.connect(database, autocommit=True)
        self._session.execute(CHANGE)
        self._rate = rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None
        self._names = iter(range(1_000_000))
        self._plans: list[tuple[UUID, list[str]]] = []
        self.written: dict[UUID, list[int]] = {}
        self.good: set[UUID] = set()
        self.bad: set[UUID] = set()
        self.tenant = self._id("tenant")
        self.projects = [self._id(f"project {n}") for n in range(PROJECTS)]

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Bring every job to its end and stop."""
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error

    def heads(self) -> dict[UUID, int]:
        return dict(
            self._session.execute(
                "select project_id, last_event_id from aivedio.project_streams"
            ).fetchall()
        )

    def count(self, query: str) -> int:
        row = self._session.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(60)
        self._session.close()

    def _run(self) -> None:
        try:
            begun = time.monotonic()
            done = 0
            while not self._stop.is_set() or self._plans:
                if not self._stop.is_set() and len(self._plans) < 40:
                    self._begin()
                task, plan = self._plans.pop(0)
                status = plan.pop(0)
                row = self._session.execute(
                    "select fixture.change(%s, %s)", [task, status]
                ).fetchone()
                assert row is not None
                self.written.setdefault(task, []).append(row[0])
                if plan:
                    self._plans.append((task, plan))
                done += 1
                if not self._stop.is_set():
                    self._stop.wait(max(0.0, begun + done / self._rate - time.monotonic()))
        except BaseException as error:
            self._error = error

    def _begin(self) -> None:
        number = next(self._names)
        name = f"job {number} {uuid4().hex[:6]}"
        self._session.execute(
            "select fixture.job(%s, p_project => %s)", [name, f"project {number % PROJECTS}"]
        )
        task = self._id(name)
        good = number % 3 != 0
        (self.good if good else self.bad).add(task)
        self._plans.append((task, [*STEPS, "provider_succeeded" if good else "failed"]))

    def _id(self, name: str) -> UUID:
        row = self._session.execute("select fixture.id(%s)", [name]).fetchone()
        assert row is not None
        found: UUID = row[0]
        return found


@dataclass
class Processes:
    """The relays, dispatchers and consumers, two or one of each, which may be hit."""

    url: str
    redis_url: str
    rocketmq: Rocketmq | None
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    admin: dict[str, int] = field(default_factory=dict)

    def start(self, name: str) -> None:
        environment = {
            "AIVEDIO_DATABASE_URL": self.url,
            "AIVEDIO_REDIS_URL": self.redis_url,
            "AIVEDIO_LOG_LEVEL": "error",
        }
        if self.rocketmq is not None:
            environment["AIVEDIO_ROCKETMQ_ENDPOINTS"] = ",".join(self.rocketmq.endpoints)
            environment["AIVEDIO_ROCKETMQ_PREFIX"] = self.rocketmq.prefix
        reading, writing = os.pipe()
        try:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "edge.cli.app", name.partition("-")[0]],
                env={**os.environ, **environment, "AIVEDIO_READY_FD": str(writing)},
                pass_fds=[writing],
            )
            os.close(writing)
            assert os.read(reading, 1), f"{name} ended"
        finally:
            os.close(reading)

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait(10)

    def stop_all(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
            process.wait(10)


@dataclass
class Redis:
    """A Valkey on one port, whatever happens to it."""

    run: Run
    port: int = field(default_factory=free_port)
    keeper: int = 0
    name: str = ""

    def start(self) -> str:
        self.name = f"valkey-{uuid4().hex[:8]}"
        url, self.keeper = self.run.start_valkey(self.name, self.port)
        return url

    @property
    def pid(self) -> int:
        return int((self.run.folder / self.name / "pid").read_text())

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        folder = self.run.folder / self.name
        eventually(lambda: not folder.exists(), 20, "Valkey is gone")


async def hung(pid: int, seconds: float) -> None:
    """Have a process do nothing for so long: that is the fault, not a wait for something."""
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


async def restarted(
    kill: Callable[[], object], start: Callable[[], object], seconds: float
) -> None:
    """Kill something and start it again after so long."""
    await asyncio.to_thread(kill)
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.to_thread(start)


def in_order(versions: Sequence[int], wanted: Sequence[int]) -> bool:
    """Tell whether each version came, and for the first time after the one before it."""
    return list(dict.fromkeys(versions)) == list(wanted)
