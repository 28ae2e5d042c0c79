"""
Messages per second from the outbox to a RocketMQ topic of type FIFO, and from there to Redis.

One process each, on a broker of one machine. Beside the rate stands what a message costs: how much
of a core's time our process takes for it, since the broker takes the rest of the machine.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
from collections.abc import Callable, Sequence

import psycopg

from relay import dispatch, outbox
from relay.buses import Rocketmq
from relay.consumer import OUTCOMES
from tests.bench.apply import DURABLE
from tests.bench.harness import Result, say
from tests.bench.relay import FILL, OWED, Process, drain
from tests.py.support import rocketmq, schema
from tests.py.support.clusters import Run

MESSAGES = 10_000
ROUNDS = 3


def run() -> Sequence[Result]:
    """Measure on PostgreSQL 18, a broker and a Valkey, all of them thrown away."""
    whole = Run.begin()
    try:
        cluster = whole.start_cluster("bench", 18, DURABLE)
        with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
            connection.execute("create database bench")
        conninfo = cluster.conninfo("bench")
        schema.apply(conninfo)
        url, _ = whole.start_valkey("redis")
        where = rocketmq.broker(whole).topic()
        with psycopg.connect(conninfo, autocommit=True) as session:
            return _measure(session, conninfo, url, where)
    finally:
        whole.end()


def _measure(
    session: psycopg.Connection[tuple[object, ...]], conninfo: str, url: str, where: Rocketmq
) -> Sequence[Result]:
    async def relaying(stopping: asyncio.Event) -> None:
        await outbox.run(
            database_url=conninfo, rocketmq=where, stopping=stopping, ready=lambda _: None
        )

    async def dispatching(stopping: asyncio.Event) -> None:
        await dispatch.run(
            database_url=conninfo,
            redis_url=url,
            rocketmq=where,
            stopping=stopping,
            ready=lambda _: None,
        )

    relayed: list[tuple[float, float]] = []
    dispatched: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        say(f"  round {number + 1} of {ROUNDS} …")
        session.execute(FILL, {"count": MESSAGES, "round": f"rocketmq {number}"})
        relayed.append(_timed(lambda: session.execute(OWED.encode()).fetchone() == (0,), relaying))
        dispatched.append(_timed(_after(MESSAGES), dispatching))
    return (
        *_results("relay_rocketmq", relayed, 1500),
        *_results("dispatch_rocketmq", dispatched, 1200),
    )


def _timed(done: Callable[[], bool], process: Process) -> tuple[float, float]:
    """Return messages per second, and microseconds of a core per message."""
    before = _cpu()
    rate = drain(done, process, MESSAGES)
    return rate, (_cpu() - before) / MESSAGES * 1e6


def _results(name: str, seen: Sequence[tuple[float, float]], bar: float) -> Sequence[Result]:
    rates = [rate for rate, _ in seen]
    median = statistics.median(rates)
    spread = (max(rates) - min(rates)) / median
    cost = statistics.median(cost for _, cost in seen)
    return (
        Result(name, median, "messages/s", None, bar, spread),
        Result(f"{name}_cost", cost, "µs of a core"),
    )


def _after(count: int) -> Callable[[], bool]:
    """Return what tells whether so many more messages have had their effect."""
    wanted = _done() + count
    return lambda: _done() >= wanted


def _done() -> float:
    return float(OUTCOMES.labels("dispatcher", "done")._value.get())


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
