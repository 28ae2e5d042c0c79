"""One question at a time, shared by those who came before it was asked."""

from __future__ import annotations

import asyncio

import pytest

from edge.gateway.snapshots import Shared


class Counter:
    """A question whose answers say how often it was asked; each waits to be let through."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.asked += 1
        answer = self.asked
        await self.go.wait()
        return answer


async def test_who_comes_while_it_is_asked_gets_the_next_answer() -> None:
    shared: Shared[int] = Shared()
    question = Counter()
    first = asyncio.create_task(shared.ask("k", question))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    later = [asyncio.create_task(shared.ask("k", question)) for _ in range(100)]
    await asyncio.sleep(0)
    assert question.asked == 1
    question.go.set()
    assert await first == 1
    assert set(await asyncio.gather(*later)) == {2}
    assert await shared.ask("k", question) == 3
    assert shared._running == shared._next == {}


async def test_different_questions_do_not_wait_for_each_other() -> None:
    shared: Shared[int] = Shared()
    slow, quick = Counter(), Counter()
    quick.go.set()
    waiting = asyncio.create_task(shared.ask("slow", slow))
    assert await shared.ask("quick", quick) == 1
    slow.go.set()
    assert await waiting == 1


async def test_one_who_gives_up_does_not_take_the_answer_from_the_others() -> None:
    shared: Shared[int] = Shared()
    question = Counter()
    first = asyncio.create_task(shared.ask("k", question))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    two = [asyncio.create_task(shared.ask("k", question)) for _ in range(2)]
    await asyncio.sleep(0)
    first.cancel()
    two[0].cancel()
    question.go.set()
    assert await two[1] == 2
    assert shared._running == shared._next == {}


async def test_a_failure_is_everybodys_and_the_next_question_is_new() -> None:
    shared: Shared[int] = Shared()

    async def fails() -> int:
        raise ValueError("no")

    for _ in range(2):
        answers = await asyncio.gather(
            *(shared.ask("k", fails) for _ in range(3)), return_exceptions=True
        )
        assert all(isinstance(answer, ValueError) for answer in answers)
    with pytest.raises(ValueError, match="no"):
        await shared.ask("k", fails)
    assert shared._running == shared._next == {}
