"""Batches of callbacks: shared commits, bounded queues, one answer each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import psycopg
import pytest

from edge import errors
from edge.database import Database
from edge.intake.accepting import Accepted, Accepting, QueueFull, Received
from tests.py.support.waiting import eventually_async

ONE = Received(0, "replicate", {}, "{}", b"", "current", True, None, "t", None)


class FakeDatabase:
    """Answers as accept_callbacks does, when the test lets it, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[Received]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures: list[Exception] = []
        self.poison: str | None = None

    async def recover(self, within: float) -> None:
        assert within < 1

    async def rows(self, row: type[Any], function: str, **arguments: Any) -> list[Accepted]:
        assert function == "accept_callbacks"
        callbacks: list[Received] = arguments["p_callbacks"]
        self.batches.append(callbacks)
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        if any(callback.body == self.poison for callback in callbacks):
            raise psycopg.errors.InternalError_("this row")
        return [
            Accepted(callback.ordinal, callback.ordinal, True, False)
            for callback in reversed(callbacks)
            if callback.body != "unknown token"
        ]


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.db = FakeDatabase()
        self.accepting = Accepting(cast(Database, self.db), **settings)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Bench:
        self._task = asyncio.create_task(self.accepting.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def send(self, body: str = "{}") -> asyncio.Task[Accepted | None]:
        return asyncio.create_task(self.accepting.accept(replace(ONE, body=body)))

    async def first_under_way(self) -> asyncio.Task[Accepted | None]:
        self.db.gate.clear()
        first = self.send()
        await eventually_async(lambda: len(self.db.batches) == 1)
        return first


async def test_what_arrives_during_a_commit_shares_the_next() -> None:
    async with Bench(max_rows=64) as bench:
        first = await bench.first_under_way()
        others = [bench.send() for _ in range(100)]
        await asyncio.sleep(0)
        assert len(bench.db.batches) == 1
        bench.db.gate.set()
        assert all(await asyncio.gather(first, *others))
    assert [len(batch) for batch in bench.db.batches] == [1, 64, 36]


async def test_each_gets_its_own_answer() -> None:
    async with Bench() as bench:
        first = await bench.first_under_way()
        known, unknown = bench.send(), bench.send("unknown token")
        bench.db.gate.set()
        assert await known and await first
        assert await unknown is None


async def test_several_commits_may_be_in_flight() -> None:
    async with Bench(in_flight=2, max_rows=1) as bench:
        bench.db.gate.clear()
        sent = [bench.send() for _ in range(3)]
        await eventually_async(lambda: len(bench.db.batches) == 2)
        bench.db.gate.set()
        await asyncio.gather(*sent)


async def test_a_full_queue_refuses_at_once() -> None:
    async with Bench(max_waiting=2) as bench:
        first = await bench.first_under_way()
        waiting = [bench.send(), bench.send()]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await bench.accepting.accept(ONE)
        bench.db.gate.set()
        assert all(await asyncio.gather(first, *waiting))


async def test_the_bytes_that_wait_are_bounded_too() -> None:
    async with Bench(max_waiting_bytes=10) as bench:
        first = await bench.first_under_way()
        waiting = bench.send("12345678")
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await bench.accepting.accept(replace(ONE, body="123"))
        bench.db.gate.set()
        assert await first and await waiting
        assert await bench.accepting.accept(replace(ONE, body="123"))


async def test_nobody_waits_longer_than_promised_and_who_left_is_not_stored() -> None:
    """W26"""
    async with Bench(answer_within=0.1) as bench:
        first = await bench.first_under_way()
        second = bench.send()
        for task in (first, second):
            with pytest.raises(errors.TooSlow):
                await task
        bench.db.gate.set()
        assert await bench.accepting.accept(ONE)
    assert [len(batch) for batch in bench.db.batches] == [1, 1]


async def test_a_quick_failure_is_tried_once_more() -> None:
    async with Bench() as bench:
        bench.db.failures = [errors.DatabaseDown("stale session")]
        assert await bench.accepting.accept(ONE)
        bench.db.failures = [errors.DatabaseDown("gone"), errors.DatabaseDown("gone")]
        with pytest.raises(errors.DatabaseDown):
            await bench.accepting.accept(ONE)
        assert await bench.accepting.accept(ONE)


async def test_a_row_that_breaks_its_batch_breaks_only_itself(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with Bench() as bench:
        bench.db.poison = "poison"
        first = await bench.first_under_way()
        good, bad, other = bench.send(), bench.send("poison"), bench.send()
        bench.db.gate.set()
        assert await first and await good and await other
        with pytest.raises(errors.Unavailable):
            await bad


async def test_stopping_refuses_what_is_under_way() -> None:
    async with Bench() as bench:
        first = await bench.first_under_way()
    with pytest.raises(errors.Unavailable):
        await first
