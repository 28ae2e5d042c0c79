"""
Callbacks per second that one process verifies and stores, over 64 connections, durably.

The reference is the same process with one insert per request: sixteen commits in flight, each of
one row. A flood of forged callbacks beside the good ones must cost them no more than a fifth. A
burst of 5,000 within a second must lose nothing: what is refused comes in when it is sent again.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
import uvloop

from tests.bench import callers
from tests.bench.apply import DURABLE
from tests.bench.callers import Answers
from tests.bench.harness import Result, say, take_turns
from tests.py.support import schema
from tests.py.support.clusters import Cluster, Run
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually

CALLBACKS = 12_000
SLICE = 3_000
CONNECTIONS = 64
ROUNDS = 3
SLICES = 8
BURST = 5_000
BURST_CONNECTIONS = 200
P99_MS = 50.0
STORED = "select count(*) from aivedio.provider_callback_inbox where starts_with(dedup_key, %s)"


def run() -> Sequence[Result]:
    """Measure rate, latency and what a flood costs."""
    with _database() as (cluster, session):
        bench = _Bench(cluster, session)
        seen = take_turns(
            {
                "ours": bench.ours,
                "one insert per request": bench.one_by_one,
            },
            ROUNDS,
        )
        ours, spread = seen["ours"]
        alone, _ = seen["one insert per request"]
        p99 = sorted(bench.p99)[len(bench.p99) // 2] * 1000
        with bench.flooding() as variants:
            sliced = take_turns(variants, SLICES)
        calm, _ = sliced["calm"]
        flooded, flooded_spread = sliced["beside a flood"]
        say(f"  forged meanwhile: {bench.forged}, of which {bench.forged_rows} made a row")
        unit = "callbacks/s"
        return (
            Result("webhook", ours, unit, alone, 2.0, spread),
            Result("webhook_p99", p99, "ms", None, P99_MS, 0.0, at_most=True),
            Result("webhook_flood", flooded, unit, calm, 0.8, flooded_spread),
        )


def run_burst() -> Sequence[Result]:
    """Measure a burst: how many of its callbacks are there in the end, and how long it takes."""
    with _database() as (cluster, session), _edge(cluster) as port:
        requests = list(callers.callbacks("burst", BURST))
        began = time.perf_counter()
        answers = uvloop.run(
            callers.until_acknowledged(port, requests, BURST_CONNECTIONS, within=1.0)
        )
        took = time.perf_counter() - began
        say(f"  answers by status: {answers.statuses}; 99% within {answers.percentile(0.99):.2f} s")
        return (
            Result("burst", _stored(session, "burst"), "callbacks", BURST, 1.0),
            Result("burst_seconds", took, "s"),
        )


class _Bench:
    def __init__(self, cluster: Cluster, session: psycopg.Connection[tuple[int]]) -> None:
        self._cluster = cluster
        self._session = session
        self._round = itertools.count()
        self.p99: list[float] = []
        self.forged = 0
        self.forged_rows = 0

    def ours(self) -> float:
        rate, answers = self._measure()
        self.p99.append(answers.percentile(0.99))
        return rate

    def one_by_one(self) -> float:
        rate, _ = self._measure("--in-flight", "16", "--rows", "1")
        return rate

    @contextmanager
    def flooding(self) -> Iterator[dict[str, Callable[[], float]]]:
        """
        Yield two measurements of one edge: with a flood beside the good callbacks, and without.

        Slices are short and take turns, so that whatever else the machine does hits both.
        """

        def calm() -> float:
            return self._rate(port, SLICE)[0]

        def flooded() -> float:
            flood.send_signal(signal.SIGCONT)
            try:
                return self._rate(port, SLICE)[0]
            finally:
                flood.send_signal(signal.SIGSTOP)

        with _edge(self._cluster) as port, _flood(port, self._add_forged) as flood:
            flood.send_signal(signal.SIGSTOP)
            yield {"calm": calm, "beside a flood": flooded}
            flood.send_signal(signal.SIGCONT)
        self.forged_rows = _stored(self._session, "forged")

    def _measure(self, *settings: str) -> tuple[float, Answers]:
        self._session.execute("truncate aivedio.provider_callback_inbox")
        self._session.execute("checkpoint")
        with _edge(self._cluster, *settings) as port:
            self._rate(port, 1000)
            return self._rate(port, CALLBACKS)

    def _rate(self, port: int, count: int) -> tuple[float, Answers]:
        requests = list(callers.callbacks(f"r{next(self._round)}", count))
        began = time.perf_counter()
        answers = uvloop.run(callers.in_turn(port, requests, CONNECTIONS))
        took = time.perf_counter() - began
        if answers.statuses != {204: count}:
            raise RuntimeError(f"not every callback was acknowledged: {answers.statuses}")
        return count / took, answers

    def _add_forged(self, count: int) -> None:
        self.forged += count


def _stored(session: psycopg.Connection[tuple[int]], prefix: str) -> int:
    row = session.execute(STORED, [prefix]).fetchone()
    assert row is not None
    return row[0]


@contextmanager
def _database() -> Iterator[tuple[Cluster, psycopg.Connection[tuple[int]]]]:
    os.environ["REPLICATE_WEBHOOK_SECRET"] = callers.SECRET
    whole = Run.begin()
    try:
        cluster = whole.start_cluster("bench", 18, DURABLE)
        with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
            connection.execute("create database bench")
        schema.apply(cluster.conninfo("bench"))
        with psycopg.connect(cluster.conninfo("bench"), autocommit=True) as session:
            yield cluster, session
    finally:
        whole.end()


@contextmanager
def _edge(cluster: Cluster, *settings: str) -> Iterator[int]:
    port = free_port()
    command = [
        *(sys.executable, "-m", "tests.bench.webhook_edge", "--port", str(port)),
        *("--database", cluster.conninfo("bench"), *settings),
    ]
    with subprocess.Popen(command) as process:
        try:
            eventually(lambda: _is_ready(port), 30.0, "the webhook edge answers")
            yield port
        finally:
            process.terminate()


def _is_ready(port: int) -> bool:
    async def answers() -> bool:
        try:
            caller = await callers.Caller.connect(port)
        except OSError:
            return False
        return await caller.send(next(callers.callbacks("ready", 1))) == 204

    return asyncio.run(answers())


@contextmanager
def _flood(port: int, count: Callable[[int], None]) -> Iterator[subprocess.Popen[bytes]]:
    """Send forged callbacks from the yielded process for the length of the block."""
    command = [sys.executable, "-m", "tests.bench.callers", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield process
        finally:
            said, _ = process.communicate(b"stop\n", timeout=30)
            count(int(said))
