"""`aivedio up` looks after its children: readiness, restarts, the order of the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from edge.cli import fleet, layout
from edge.cli.fleet import Fleet, Part, PartFailed
from edge.cli.processes import PROCESSES
from tests.py.support.processes import alive
from tests.py.support.waiting import eventually_async

REPLICATE = Path(__file__).parents[3] / "db" / "providers" / "replicate.sql"

# A child that does what its name says; sys.argv[1] is the name, LOG the folder of this test.
CHILD = """
import os, signal, sys, time
name, log = sys.argv[1], os.environ["LOG"]
def ready(): os.write(int(os.environ["AIVEDIO_READY_FD"]), b"ready\\n")
def stopped(*_):
    open(log, "a").write(name + "\\n")
    sys.exit(0)
if "deaf" in name: signal.signal(signal.SIGTERM, signal.SIG_IGN)
else: signal.signal(signal.SIGTERM, stopped)
if "broken" in name: sys.exit("a hint why")
if "silent" in name: time.sleep(60)
ready()
if "fleeting" in name: sys.exit("a hint why")
while True: time.sleep(60)
"""


@asynccontextmanager
async def running(tmp_path: Path, *parts: Part) -> AsyncIterator[tuple[Fleet, list[str]]]:
    said: list[str] = []
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    own = Fleet(
        parts,
        {**os.environ, "LOG": str(tmp_path / "order")},
        tmp_path,
        lock,
        said.append,
        command=[sys.executable, "-c", CHILD],
    )
    try:
        yield own, said
    finally:
        await own.stop()
        os.close(lock)


async def test_it_is_started_when_every_child_is_ready_and_stops_in_turn(tmp_path: Path) -> None:
    parts = [Part("last", 2), Part("first", 0), Part("second", 1)]
    async with running(tmp_path, *parts) as (own, _):
        await own.start()
        pids = own.pids
        assert sorted(pids) == ["first", "last", "second"]
    assert (tmp_path / "order").read_text().split() == ["first", "second", "last"]
    assert not any(alive(pid) for pid in pids.values())


async def test_a_child_that_fails_to_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    async with running(tmp_path, Part("good", 0), Part("broken", 0)) as (own, _):
        with pytest.raises(PartFailed, match=r"broken did not become ready:\n *a hint why"):
            await own.start()


async def test_waiting_for_readiness_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "READY_WITHIN", 0.3)
    async with running(tmp_path, Part("silent", 0)) as (own, _):
        with pytest.raises(PartFailed, match="silent did not become ready"):
            await own.start()


async def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    async with running(tmp_path, Part("good", 0)) as (own, said):
        await own.start()
        tending = asyncio.create_task(own.tend())
        before = own.pids["good"]
        os.kill(before, signal.SIGKILL)
        await eventually_async(lambda: "good is ready again" in said)
        assert own.pids["good"] != before
        assert said[0] == "good ended (status -9), starting it again"
        tending.cancel()
        with suppress(asyncio.CancelledError):
            await tending


async def test_a_child_that_keeps_dying_ends_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "_FIRST_PAUSE", 0.01)
    async with running(tmp_path, Part("fleeting", 0), Part("good", 0)) as (own, _):
        await own.start()
        with pytest.raises(PartFailed, match="fleeting keeps dying"):
            await own.tend()


async def test_a_child_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    async with running(tmp_path, Part("deaf", 0, stops_within=0.3)) as (own, said):
        await own.start()
        pid = own.pids["deaf"]
    assert not alive(pid)
    assert said == ["deaf did not stop in 0 s, killing it"]


def test_a_submission_in_flight_has_the_time_to_be_answered() -> None:
    """Cut off, nobody would know whether the provider took it."""
    with layout.places(1, True, "", "") as where:
        within = {part.name: part.stops_within for part in layout.parts(where)}
    submission = json.loads(REPLICATE.read_text().split("$profile$")[1])["submit"]["timeout_s"]
    # For a place at its host, and for the answer.
    assert within["submit"] == PROCESSES["submit"].winds_up > 2 * submission


def test_the_pretend_provider_stops_after_those_who_wait_for_its_answers() -> None:
    with layout.places(1, True, "", "") as where:
        turn = {part.name: part.stops for part in layout.parts(where)}
    assert turn["pretend-provider"] > max(turn["submit"], turn["poll"])
