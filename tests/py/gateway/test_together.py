"""Many small questions become few, and each is answered by one that was sent after it came."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from edge import errors
from edge.gateway import together
from edge.gateway.together import Together
from tests.py.support.waiting import eventually_async


class Database:
    """Squares numbers, once the test lets it answer."""

    def __init__(self) -> None:
        self.questions: list[list[int]] = []
        self.may_answer = asyncio.Event()
        self.fails = False

    async def __call__(self, keys: Sequence[int]) -> dict[int, int]:
        self.questions.append(list(keys))
        await self.may_answer.wait()
        if self.fails:
            raise errors.DatabaseDown("away")
        return {key: key * key for key in keys}


async def test_who_comes_meanwhile_is_asked_about_in_the_next_question() -> None:
    database = Database()
    asking = Together(database)
    first = asyncio.create_task(asking.ask(1))
    await eventually_async(lambda: database.questions)
    # The same one too: something may have been committed since the question was sent.
    others = [asyncio.create_task(asking.ask(number)) for number in (1, 1, *range(10))]
    await asyncio.sleep(0)
    database.may_answer.set()
    assert await first == 1
    assert await asyncio.gather(*others) == [1, 1, *(number * number for number in range(10))]
    assert [len(question) for question in database.questions] == [1, 10]


async def test_a_question_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "AT_ONCE", 4)
    database = Database()
    database.may_answer.set()
    asking = Together(database)
    assert await asyncio.gather(*map(asking.ask, range(10))) == [n * n for n in range(10)]
    assert sum(map(len, database.questions)) == 10
    assert max(map(len, database.questions)) == 4


async def test_a_failed_question_fails_those_it_was_about_and_nobody_after() -> None:
    database = Database()
    database.fails = True
    database.may_answer.set()
    asking = Together(database)
    gone = asyncio.create_task(asking.ask(1))
    staying = asyncio.create_task(asking.ask(1))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(errors.DatabaseDown):
        await staying
    database.fails = False
    assert await asking.ask(1) == 1
    await asking.close()
