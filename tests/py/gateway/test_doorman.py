"""Many newcomers are few questions, and each is answered by one that was asked after they came."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

import pytest

from edge import errors
from edge.gateway import doorman
from edge.gateway.doorman import Doorman
from edge.gateway.store import Grant
from tests.py.support.waiting import eventually_async


def grant(number: int) -> Grant:
    return Grant(uuid.UUID(int=1), uuid.UUID(int=number), uuid.UUID(int=2), "s", 0, False)


class Asked:
    """A store whose questions wait until the test lets them be answered."""

    def __init__(self) -> None:
        self.questions: list[list[Grant]] = []
        self.lost: set[Grant] = set()
        self.may_answer = asyncio.Event()
        self.fails = False

    async def __call__(self, grants: Sequence[Grant]) -> set[Grant]:
        self.questions.append(list(grants))
        await self.may_answer.wait()
        if self.fails:
            raise errors.DatabaseDown("away")
        return self.lost & set(grants)


async def test_who_comes_meanwhile_is_asked_about_in_the_next_question() -> None:
    asked = Asked()
    asked.lost = {grant(7)}
    keeper = Doorman(asked)
    first = asyncio.create_task(keeper.admits(grant(1)))
    await eventually_async(lambda: asked.questions)
    # The same one too: its access may have been taken away since the question was sent.
    others = [asyncio.create_task(keeper.admits(grant(number))) for number in (1, 1, *range(10))]
    await asyncio.sleep(0)
    asked.may_answer.set()
    assert await first
    told = await asyncio.gather(*others)
    assert told == [True, True, *(number != 7 for number in range(10))]
    assert [len(question) for question in asked.questions] == [1, 10]


async def test_a_question_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorman, "AT_ONCE", 4)
    asked = Asked()
    asked.may_answer.set()
    keeper = Doorman(asked)
    assert all(await asyncio.gather(*(keeper.admits(grant(number)) for number in range(10))))
    assert sum(map(len, asked.questions)) == 10
    assert max(map(len, asked.questions)) == 4


async def test_a_failed_question_fails_those_it_was_about_and_nobody_after() -> None:
    asked = Asked()
    asked.fails = True
    asked.may_answer.set()
    keeper = Doorman(asked)
    gone = asyncio.create_task(keeper.admits(grant(1)))
    staying = asyncio.create_task(keeper.admits(grant(1)))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(errors.DatabaseDown):
        await staying
    asked.fails = False
    assert await keeper.admits(grant(1))
    await keeper.close()
