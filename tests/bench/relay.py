"""
Messages per second from the outbox to pgmq, and from pgmq to Redis, one process each.

Both drain a backlog of 20,000 messages. Each is measured again with a snapshot held open
elsewhere, which keeps every row that is done from going: the rate must not care.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import uvloop

from relay import dispatch, outbox
from tests.bench.apply import DURABLE
from tests.bench.harness import Result, take_turns
from tests.py.support import schema
from tests.py.support.clusters import Run
from tests.py.support.waiting import eventually_async

MESSAGES = 20_000
ROUNDS = 3
WITHIN = 120.0
FILL = (Path(__file__).parent / "sql" / "owed.sql").read_text()
OWED = "select count(*) from aivedio.outbox_events where publish_status = 'pending'"
QUEUED = "select count(*) from pgmq.q_aivedio_dispatcher where headers ->> 'tag' <> 'beat'"

Process = Callable[[asyncio.Event], Awaitable[None]]


def run() -> Sequence[Result]:
    """Measure on PostgreSQL 18 with a durable, throw-away cluster and a Valkey beside it."""
    whole = Run.begin()
    try:
        cluster = whole.start_cluster("bench", 18, DURABLE)
        with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
            connection.execute("create database bench")
        conninfo = cluster.conninfo("bench")
        schema.apply(conninfo)
        url, _ = whole.start_valkey("redis")
        with psycopg.connect(conninfo, autocommit=True) as session:
            return _measure(session, conninfo, url)
    finally:
        whole.end()


def _measure(
    session: psycopg.Connection[tuple[object, ...]], conninfo: str, url: str
) -> Sequence[Result]:
    rounds = itertools.count()

    async def relaying(stopping: asyncio.Event) -> None:
        await outbox.run(database_url=conninfo, stopping=stopping, ready=lambda _: None)

    async def dispatching(stopping: asyncio.Event) -> None:
        await dispatch.run(
            database_url=conninfo, redis_url=url, stopping=stopping, ready=lambda _: None
        )

    def none(left: str) -> Callable[[], bool]:
        return lambda: session.execute(left.encode()).fetchone() == (0,)

    def relay() -> float:
        session.execute(FILL, {"count": MESSAGES, "round": str(next(rounds))})
        return drain(none(OWED), relaying, MESSAGES)

    def both(held: bool) -> Callable[[], float]:
        def measure() -> float:
            with _snapshot(conninfo, held):
                rate = relay()
                dispatched.setdefault(held, []).append(drain(none(QUEUED), dispatching, MESSAGES))
            return rate

        return measure

    dispatched: dict[bool, list[float]] = {}
    relayed = take_turns({"free": both(held=False), "held": both(held=True)}, ROUNDS)
    free, held = (sorted(dispatched[kind])[ROUNDS // 2] for kind in (False, True))
    unit = "messages/s"
    return (
        Result("relay_pgmq", relayed["free"][0], unit, None, 5000, relayed["free"][1]),
        Result("relay_held", relayed["held"][0], unit, relayed["free"][0], 0.9, relayed["held"][1]),
        Result("dispatch_pgmq", free, unit, None, 5000),
        Result("dispatch_held", held, unit, free, 0.9),
    )


def drain(done: Callable[[], bool], process: Process, count: int) -> float:
    """Run a process until all is done and return how many messages it did in a second."""

    async def run_until_done() -> float:
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        running = asyncio.ensure_future(process(stopping))
        begun = loop.time()
        await eventually_async(done, WITHIN, "all is drained")
        seconds = loop.time() - begun
        stopping.set()
        await running
        return count / seconds

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_until_done())


@contextmanager
def _snapshot(conninfo: str, held: bool) -> Iterator[None]:
    if not held:
        yield
        return
    with psycopg.connect(conninfo) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute(OWED.encode())
        yield
