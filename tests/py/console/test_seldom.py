"""A question that takes long is asked seldom."""

from __future__ import annotations

import asyncio

import pytest

from edge import errors
from edge.console.seldom import Seldom


class Database:
    """Answers after a while of a clock that only it moves."""

    def __init__(self, takes: float) -> None:
        self.takes = takes
        self.now = 0.0
        self.asked = 0
        self.error: errors.EdgeError | None = None

    async def __call__(self) -> int:
        self.asked += 1
        self.now += self.takes
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return self.asked

    def seldom(self) -> Seldom[int]:
        return Seldom(self, least_s=1, times=10, clock=lambda: self.now)


async def test_many_share_an_answer() -> None:
    seldom = Database(takes=0.01).seldom()
    assert await asyncio.gather(*(seldom.ask() for _ in range(50))) == [1] * 50


@pytest.mark.parametrize(("takes", "kept"), [(0.01, 1.0), (0.5, 5.0), (9.0, 90.0)])
async def test_an_answer_is_kept_by_what_it_cost(takes: float, kept: float) -> None:
    database = Database(takes)
    seldom = database.seldom()
    assert await seldom.ask() == 1
    database.now += kept - 0.001
    assert await seldom.ask() == 1
    database.now += 0.002
    assert await seldom.ask() == 2


async def test_what_took_too_long_is_not_asked_again_at_once() -> None:
    database = Database(takes=10)
    database.error = errors.TooSlow("it took too long")
    seldom = database.seldom()
    for _ in range(3):
        with pytest.raises(errors.TooSlow):
            await seldom.ask()
    assert database.asked == 1
    database.now += 101
    database.error = None
    assert await seldom.ask() == 2


async def test_an_outage_is_not_kept() -> None:
    database = Database(takes=10)
    database.error = errors.DatabaseDown("no answer")
    seldom = database.seldom()
    with pytest.raises(errors.DatabaseDown):
        await seldom.ask()
    database.error = None
    assert await seldom.ask() == 2
