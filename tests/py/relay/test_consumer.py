"""The consumer loop: acknowledge after the effect, retry with pauses, bury, and stop in time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from edge import errors
from relay.bus import BEAT, BusDown, Delivery, Message, Receipt
from relay.consumer import Consumer, Each, Effect, Outcome, Result
from tests.py.support.waiting import eventually_async


class Queue:
    """A bus in memory with one group; it notes what its consumer says."""

    batch_limit = 100
    parallel = 1
    visibility = 0.2

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self.waiting = [Delivery(message, 1, number) for number, message in enumerate(messages)]
        self.acked: list[Message] = []
        self.retried: list[tuple[Message, float]] = []
        self.buried: list[tuple[Message, str]] = []
        self.extended = 0
        self.failures = 0

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        raise NotImplementedError

    @asynccontextmanager
    async def subscribe(self, group: str, *, visibility: float = 30.0) -> AsyncIterator[Queue]:
        yield self

    async def receive(self, limit: int, within: float) -> list[Delivery]:
        if self.failures:
            self.failures -= 1
            raise BusDown("away")
        if not self.waiting:
            await asyncio.sleep(min(within, 0.01))
        taken, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return taken

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        self.acked += [delivery.message for delivery in deliveries]

    async def retry(self, delivery: Delivery, delay: float) -> None:
        self.retried.append((delivery.message, delay))
        self.waiting.append(Delivery(delivery.message, delivery.tries + 1, delivery.handle))

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        self.extended += 1

    async def bury(self, delivery: Delivery, error: str) -> None:
        self.buried.append((delivery.message, error))


def message(event_id: int, task: UUID | None = None, tag: str = "running") -> Message:
    return Message(task or uuid4(), tag, {"event_id": event_id})


@asynccontextmanager
async def consuming(
    queue: Queue, effect: Effect, *, lanes: int = 4, states: list[bool] | None = None
) -> AsyncIterator[asyncio.Event]:
    stopping = asyncio.Event()
    each = Each(effect, lanes=lanes, stopping=stopping)
    consumer = Consumer(queue, "media", each, batch=20, max_tries=3, visibility=queue.visibility)
    tell: Callable[[bool], None] = states.append if states is not None else lambda _: None
    running = asyncio.create_task(consumer.run(stopping, tell))
    try:
        yield stopping
    finally:
        stopping.set()
        async with asyncio.timeout(15):
            await running


def noting(done: list[Message]) -> Effect:
    async def effect(message: Message) -> None:
        await asyncio.sleep(0.001)
        done.append(message)

    return effect


async def test_a_message_is_acknowledged_after_its_effect() -> None:
    queue = Queue([message(1)])
    allowed = asyncio.Event()

    async def effect(message: Message) -> None:
        await allowed.wait()
        assert queue.acked == []

    async with consuming(queue, effect):
        await eventually_async(lambda: not queue.waiting)
        await asyncio.sleep(0.05)
        assert queue.acked == []
        allowed.set()
        await eventually_async(lambda: len(queue.acked) == 1)


async def test_tasks_run_side_by_side_and_each_in_order() -> None:
    tasks = [uuid4() for _ in range(8)]
    queue = Queue([message(n * 8 + t, task) for n in range(5) for t, task in enumerate(tasks)])
    done: list[Message] = []
    running = most = 0

    async def effect(message: Message) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1
        done.append(message)

    async with consuming(queue, effect, lanes=3):
        await eventually_async(lambda: len(queue.acked) == 40)
    assert 1 < most <= 3
    for task in tasks:
        ids = [one.body["event_id"] for one in done if one.task_id == task]
        assert ids == sorted(ids)


async def test_a_repeat_has_no_second_effect() -> None:
    one = message(1)
    queue = Queue([one, message(2), one])
    done: list[Message] = []
    async with consuming(queue, noting(done)):
        await eventually_async(lambda: len(queue.acked) == 3)
    assert sorted(message.body["event_id"] for message in done) == [1, 2]


async def test_a_failing_effect_is_retried_with_growing_pauses_and_then_buried() -> None:
    bad, good = message(1), message(2)
    queue = Queue([bad, good])

    async def effect(message: Message) -> None:
        if message is bad:
            raise ZeroDivisionError

    async with consuming(queue, effect):
        await eventually_async(lambda: queue.buried)
    assert queue.buried == [(bad, "ZeroDivisionError")]
    assert queue.acked == [good]
    delays = [delay for _, delay in queue.retried]
    assert len(delays) == 2 and 0 < delays[0] <= 1.0 < 2.0 >= delays[1] > 0


async def test_a_dead_letter_s_reason_quotes_no_value() -> None:
    queue = Queue([message(1)])

    async def effect(message: Message) -> None:
        raise errors.BadValue('invalid input syntax for type uuid: "a secret"', code="22P02")

    async with consuming(queue, effect):
        await eventually_async(lambda: queue.buried)
        assert queue.buried[0][1] == "BadValue 22P02"


async def test_what_the_database_refuses_for_good_is_buried_at_once() -> None:
    queue = Queue([message(1)])

    async def effect(message: Message) -> None:
        raise errors.Rejected("message names no task or attempt", code="VC701")

    async with consuming(queue, effect):
        await eventually_async(lambda: queue.buried)
    assert queue.buried[0][1] == "Rejected VC701: message names no task or attempt"
    assert queue.retried == []


async def test_an_outage_of_the_database_counts_no_try() -> None:
    queue = Queue([message(1), message(2)])
    failures = 4

    async def effect(message: Message) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise errors.DatabaseDown("away")

    async with consuming(queue, effect):
        await eventually_async(lambda: len(queue.acked) == 2)
    assert queue.retried == [] and queue.buried == []


async def test_a_deadlock_is_tried_again_at_once() -> None:
    queue = Queue([message(1)])
    failures = 2

    async def effect(message: Message) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise errors.Contended("deadlock detected", code="40P01")

    async with consuming(queue, effect):
        await eventually_async(lambda: len(queue.acked) == 1)
    assert queue.retried == [] and queue.buried == []


@pytest.mark.parametrize(
    "error",
    [errors.Contended("lock timeout", code="55P03"), errors.TooSlow("timeout", code="57014")],
    ids=["contended", "too slow"],
)
async def test_what_is_in_the_way_costs_no_try(error: errors.EdgeError) -> None:
    # Three tries are allowed; the row is in somebody's way for longer than that.
    queue = Queue([message(1), message(2)])
    deliveries: Counter[int] = Counter()

    async def effect(message: Message) -> None:
        number = message.body["event_id"]
        deliveries[number] += 1
        if number == 1 and len(queue.retried) < 7:
            raise error

    async with consuming(queue, effect):
        await eventually_async(lambda: len(queue.acked) == 2)
    assert queue.buried == [] and len(queue.retried) == 7
    assert deliveries[2] == 1, "and the other message did not wait for it"


async def test_after_what_was_in_the_way_a_message_has_all_its_tries() -> None:
    queue = Queue([message(1)])

    async def effect(message: Message) -> None:
        if len(queue.retried) < 4:
            raise errors.TooSlow("timeout", code="57014")
        raise ZeroDivisionError

    async with consuming(queue, effect):
        await eventually_async(lambda: queue.buried)
    assert len(queue.retried) == 4 + 2, "then three of its own, the last of which buries it"


async def test_a_body_that_is_no_object_harms_only_itself() -> None:
    bad = Message(uuid4(), "running", cast("Any", ["not", "an", "object"]))
    queue = Queue([message(1), bad, message(2)])
    done: list[Message] = []

    async def effect(message: Message) -> None:
        done.append(message)
        dict(message.body)

    async with consuming(queue, effect, lanes=1):
        await eventually_async(lambda: queue.buried)
    assert [one for one, _ in queue.buried] == [bad]
    assert sorted(one.body["event_id"] for one in queue.acked) == [1, 2]


async def test_an_outage_that_ends_a_batch_costs_nobody_a_try() -> None:
    queue = Queue([message(1), message(2)])
    outages = 5

    async def effect(messages: Sequence[Message]) -> Sequence[Result]:
        nonlocal outages
        if outages:
            outages -= 1
            raise errors.DatabaseDown("away")
        return [(Outcome.DONE, "")] * len(messages)

    stopping = asyncio.Event()
    consumer = Consumer(queue, "dispatcher", effect, batch=20, max_tries=3, visibility=0.2)
    running = asyncio.create_task(consumer.run(stopping, lambda _: None))
    try:
        await eventually_async(lambda: len(queue.acked) == 2)
    finally:
        stopping.set()
        await running
    assert queue.buried == []


async def test_an_outage_of_the_bus_is_met_with_pauses() -> None:
    queue = Queue([message(1)])
    queue.failures = 3
    states: list[bool] = []
    async with consuming(queue, noting([]), states=states):
        await eventually_async(lambda: len(queue.acked) == 1)
    assert states[:3] == [False] * 3 and states[-1] is True


async def test_a_slow_effect_keeps_its_messages_hidden() -> None:
    # R10
    queue = Queue([message(1)])

    async def effect(message: Message) -> None:
        await asyncio.sleep(queue.visibility * 2)

    async with consuming(queue, effect):
        await eventually_async(lambda: len(queue.acked) == 1)
    assert queue.extended >= 2


async def test_stopping_waits_for_the_effect_in_progress() -> None:
    queue = Queue([message(1), message(2)])
    done: list[Message] = []
    begun = asyncio.Event()

    async def effect(message: Message) -> None:
        begun.set()
        await asyncio.sleep(0.1)
        done.append(message)

    async with consuming(queue, effect, lanes=1) as stopping:
        await begun.wait()
        stopping.set()
    assert queue.acked == done and len(done) == 1, "the second was not begun"
    assert [delay for _, delay in queue.retried] == [0.0], "and is given back"


async def test_a_beat_is_nobodys_effect() -> None:
    queue = Queue([Message(UUID(int=0), BEAT, {"kind": BEAT})])
    done: list[Message] = []
    async with consuming(queue, noting(done)):
        await eventually_async(lambda: len(queue.acked) == 1)
    assert done == []


async def test_a_result_is_given_for_every_message_in_its_place() -> None:
    bad = message(2)

    async def effect(message: Message) -> None:
        if message is bad:
            raise ValueError

    each: Callable[[Sequence[Message]], Awaitable[object]] = Each(
        effect, lanes=2, stopping=asyncio.Event()
    )
    results = await each([message(1), bad, message(3)])
    assert results == [
        (Outcome.DONE, ""),
        (Outcome.FAILED, "ValueError"),
        (Outcome.DONE, ""),
    ]
