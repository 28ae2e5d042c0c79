"""
The whole system under load while its processes are killed at random: everything ends as it must.

Each process but the provider is a target, over and over. Callbacks that find nobody are lost, as a
provider loses them, and polls bring what they would have said.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from tests.py.cli.test_up import environment
from tests.py.convergence.invariants import broken
from tests.py.support.processes import children, command
from tests.py.support.sessions import rows, value
from tests.py.support.waiting import eventually

TARGETS = (
    *("webhook", "inbox", "submit", "poll", "relay", "dispatch", "consume", "gateway", "upkeep"),
    "pretend-media",
)
# What a webhook edge that is dead costs a provider that tries once.
NOT_TAKEN = re.compile(r"✗ job .*: callback msg_\w+ .*(was not taken|was never taken)")
# A process may grow by so much while it fills its pools and caches.
FILLS_BYTES = 24 * 1024 * 1024


class Killer(threading.Thread):
    """Kills a process whenever all are up, and notes how much memory each had."""

    def __init__(self, up: int, said: Path, every: float) -> None:
        super().__init__(daemon=True)
        self.killed: list[str] = []
        self.sizes: dict[int, list[int]] = {}
        self.names: dict[int, str] = {}
        self.over = threading.Event()
        self._up = up
        self._said = said
        self._every = every
        self._chance = random.Random(7)

    def run(self) -> None:
        turn: list[str] = []
        while not self.over.wait(self._every * self._chance.uniform(0.5, 1.5)):
            targets = self._running()
            for name, pid in targets.items():
                self.names[pid] = name
                self.sizes.setdefault(pid, []).append(resident(pid))
            # On a slow machine nothing would ever be up if each was killed by the clock.
            if self._said.read_text().count("is ready again") < len(self.killed):
                continue
            # Each in its turn, in an order that chance makes: none is forgotten.
            turn = turn or self._chance.sample(TARGETS, len(TARGETS))
            if (name := turn.pop()) in targets:
                os.kill(targets[name], signal.SIGKILL)
                self.killed.append(name)

    def _running(self) -> dict[str, int]:
        found = {command(pid).rpartition(" ")[2]: pid for pid in children(self._up)}
        return {name: pid for name, pid in found.items() if name in TARGETS}


def resident(pid: int) -> int:
    """Return a process's resident memory in bytes, 0 once it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("jobs", "every", "within"),
    [
        pytest.param(40, 1.0, 400, id="short"),
        pytest.param(2500, 6.0, 1700, id="twenty minutes", marks=pytest.mark.long),
    ],
)
def test_the_system_survives_kills_under_load(
    database: str, valkey: str, place: Path, jobs: int, every: float, within: int
) -> None:
    with (place / "said").open("w") as said:
        up = subprocess.Popen(
            [
                *(sys.executable, "-m", "edge.cli.app", "up", "--once"),
                *("--jobs", str(jobs), "--timeout", str(within)),
            ],
            env=environment(
                AIVEDIO_DATABASE_URL=database, AIVEDIO_REDIS_URL=valkey, TMPDIR=str(place)
            ),
            stdout=subprocess.PIPE,
            stderr=said,
        )
    killer = Killer(up.pid, place / "said", every)
    try:
        with psycopg.connect(database, autocommit=True) as session:
            some = "select count(*) > 3 from aivedio.generation_tasks where status = 'running'"
            eventually(lambda: value(session, some), 60.0, "jobs run")
        killer.start()
        output, _ = up.communicate(timeout=within + 60)
    finally:
        killer.over.set()
        if up.poll() is None:
            up.kill()
            up.wait()

    text = (place / "said").read_text()
    wrong = [line for line in text.splitlines() if "✗ job" in line and not NOT_TAKEN.search(line)]
    assert wrong == []
    report = json.loads(output)
    assert (report["ready"], report["lost"]) == (jobs, 0)
    assert len(killer.killed) >= 3

    with psycopg.connect(database, autocommit=True) as session:
        assert broken(session) == {}
        status = "select distinct status from aivedio.generation_tasks"
        assert rows(session, status) == [("ready",)]
        sent = "select attempt_count, count(*) from aivedio.generation_tasks group by 1"
        assert rows(session, sent) == [(1, jobs)], "nothing was submitted twice"
        dead = "select count(*) from aivedio.provider_callback_inbox where process_status = 'dead'"
        assert value(session, dead) == 0
        ledger = "select ledger_type, count(*) from aivedio.credit_ledger group by 1 order by 1"
        assert rows(session, ledger) == [("reserve", jobs), ("settle", jobs)]
    grown = {
        f"{killer.names[pid]} {pid}": (sizes[len(sizes) // 3], max(sizes))
        for pid, sizes in killer.sizes.items()
        if len(sizes) >= 30 and max(sizes) > 1.1 * sizes[len(sizes) // 3] + FILLS_BYTES
    }
    assert grown == {}
