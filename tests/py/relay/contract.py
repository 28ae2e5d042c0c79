"""
What every bus must do, whatever carries it.

An implementation's test module subclasses `BusContract` and gives it a `stage`: two connections
to a fresh bus with the three groups, and messages that this bus refuses or cannot take.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from uuid import UUID, uuid4

from relay.bus import BEAT, BEAT_KEY, Bus, BusDown, Delivery, Fate, Message, Subscription
from tests.py.support.waiting import eventually_async

GROUP = "dispatcher"
VISIBILITY = 1.0
PATIENCE = 20.0

_event_ids = itertools.count(1)


@dataclass(frozen=True)
class Stage:
    """A bus under test. `outage` makes it unreachable for the length of a block."""

    publisher: Bus
    consumer: Bus
    poison: Callable[[UUID], Message]
    outage: Callable[[], AbstractAsyncContextManager[None]]


def message(task: UUID, version: int, tag: str = "running") -> Message:
    body = {
        "event_id": next(_event_ids),
        "aggregate_id": str(task),
        "aggregate_version": version,
        "status": tag,
        "text": 'quotes " and \\ and ünïcode',
    }
    return Message(task, tag, body)


def versions(messages: Sequence[Message], task: UUID) -> list[int]:
    return [one.body["aggregate_version"] for one in messages if one.task_id == task]


async def take(
    subscription: Subscription,
    count: int,
    *,
    ack: bool = True,
    limit: int = 100,
    patient: bool = False,
) -> list[Delivery]:
    """Receive `count` deliveries, and no more, in bounded time; `patient` with a bus that heals."""
    taken: list[Delivery] = []
    async with asyncio.timeout(PATIENCE):
        while len(taken) < count:
            try:
                batch = await subscription.receive(min(limit, count - len(taken)), 1.0)
                if ack:
                    await subscription.ack(batch)
            except BusDown:
                if not patient:
                    raise
                await asyncio.sleep(0.1)
            else:
                taken += batch
    return taken


async def nothing_comes(subscription: Subscription, within: float = 0.5) -> bool:
    return not await subscription.receive(100, within)


class BusContract:
    """The suite. The name of a test is the promise."""

    async def test_every_message_gets_a_receipt_and_arrives_whole(self, stage: Stage) -> None:
        sent = [message(uuid4(), 1) for _ in range(20)]
        receipts = await stage.publisher.publish(sent)
        assert [receipt.fate for receipt in receipts] == [Fate.SENT] * 20
        async with stage.consumer.subscribe(GROUP) as subscription:
            got = [delivery.message for delivery in await take(subscription, 20)]
            assert await nothing_comes(subscription)
        assert sorted(got, key=_by_event) == sent

    async def test_an_empty_batch_is_no_error(self, stage: Stage) -> None:
        assert await stage.publisher.publish([]) == []

    async def test_a_task_keeps_its_order_within_and_across_batches(self, stage: Stage) -> None:
        tasks = [uuid4() for _ in range(5)]
        for first in (1, 4, 7):
            batch = [message(task, v) for v in range(first, first + 3) for task in tasks]
            receipts = await stage.publisher.publish(batch)
            assert {receipt.fate for receipt in receipts} == {Fate.SENT}
        async with stage.consumer.subscribe(GROUP) as subscription:
            got = [one.message for one in await take(subscription, 45, limit=4)]
        for task in tasks:
            assert versions(got, task) == list(range(1, 10))

    async def test_a_waiting_reader_gets_a_message_at_once(self, stage: Stage) -> None:
        async with stage.consumer.subscribe(GROUP) as subscription:
            assert await nothing_comes(subscription, 0.2)
            waiting = asyncio.create_task(subscription.receive(10, PATIENCE))
            loop = asyncio.get_running_loop()
            delays = []
            for _ in range(5):
                await asyncio.sleep(0.1)  # let the reader fall asleep: that is the case tested
                sent_at = loop.time()
                await stage.publisher.publish([message(uuid4(), 1)])
                await subscription.ack(await waiting)
                delays.append(loop.time() - sent_at)
                waiting = asyncio.create_task(subscription.receive(10, PATIENCE))
            waiting.cancel()
        assert sorted(delays)[2] < 0.5, delays

    async def test_groups_get_what_their_tags_ask_for(self, stage: Stage) -> None:
        task = uuid4()
        sent = [
            message(task, 1, "submitted"),
            message(task, 2, "provider_succeeded"),
            message(task, 3, "processing_media"),
            message(task, 4, "ready"),
            Message(BEAT_KEY, BEAT, {"kind": BEAT, "sent_at": 1.5}),
        ]
        await stage.publisher.publish(sent)
        for group, wanted in (
            ("dispatcher", ["submitted", "provider_succeeded", "processing_media", "ready", BEAT]),
            ("media", ["provider_succeeded"]),
            ("billing", ["submitted", "provider_succeeded", "ready"]),
        ):
            async with stage.consumer.subscribe(group) as subscription:
                got = await take(subscription, len(wanted))
                assert await nothing_comes(subscription)
            assert sorted(one.message.tag for one in got) == sorted(wanted), group

    async def test_what_is_not_acknowledged_comes_again(self, stage: Stage) -> None:
        sent = message(uuid4(), 1)
        await stage.publisher.publish([sent])
        async with stage.consumer.subscribe(GROUP, visibility=VISIBILITY) as subscription:
            (first,) = await take(subscription, 1, ack=False)
            assert await nothing_comes(subscription, VISIBILITY / 2), "hidden meanwhile"
            (second,) = await take(subscription, 1)
            assert await nothing_comes(subscription, 2 * VISIBILITY), "an acknowledged one does not"
        assert first.message == second.message == sent

    async def test_a_consumer_that_dies_leaves_its_messages_to_the_next(self, stage: Stage) -> None:
        task = uuid4()
        await stage.publisher.publish([message(task, version) for version in (1, 2, 3)])
        async with stage.consumer.subscribe(GROUP, visibility=VISIBILITY) as subscription:
            await take(subscription, 3, ack=False)
        async with stage.consumer.subscribe(GROUP, visibility=VISIBILITY) as subscription:
            got = [one.message for one in await take(subscription, 3)]
        assert sorted(versions(got, task)) == [1, 2, 3]

    async def test_two_members_share_a_group(self, stage: Stage) -> None:
        sent = [message(uuid4(), 1) for _ in range(60)]
        await stage.publisher.publish(sent)
        async with (
            stage.consumer.subscribe(GROUP) as one,
            stage.consumer.subscribe(GROUP) as other,
        ):
            halves = await asyncio.gather(_drain(one), _drain(other))
        got = [message for half in halves for message in half]
        assert sorted(got, key=_by_event) == sent, "each message once, to one of them"

    async def test_a_retry_comes_after_its_delay(self, stage: Stage) -> None:
        await stage.publisher.publish([message(uuid4(), 1)])
        loop = asyncio.get_running_loop()
        async with stage.consumer.subscribe(GROUP) as subscription:
            (first,) = await take(subscription, 1, ack=False)
            await subscription.retry(first, 1.0)
            asked_at = loop.time()
            (second,) = await take(subscription, 1)
            assert 0.9 < loop.time() - asked_at < 5.0
        assert second.message == first.message

    async def test_an_extended_delivery_stays_hidden(self, stage: Stage) -> None:
        await stage.publisher.publish([message(uuid4(), 1)])
        async with stage.consumer.subscribe(GROUP, visibility=VISIBILITY) as subscription:
            deliveries = await take(subscription, 1, ack=False)
            for _ in range(4):
                assert await nothing_comes(subscription, VISIBILITY * 0.6)
                await subscription.extend(deliveries)
            await subscription.ack(deliveries)
            assert await nothing_comes(subscription, VISIBILITY * 1.5)

    async def test_a_buried_message_comes_no_more(self, stage: Stage) -> None:
        await stage.publisher.publish([message(uuid4(), 1), message(uuid4(), 1)])
        async with stage.consumer.subscribe(GROUP, visibility=VISIBILITY) as subscription:
            first, second = await take(subscription, 2, ack=False)
            await subscription.bury(first, "nobody can read it")
            await subscription.ack([second])
            assert await nothing_comes(subscription, VISIBILITY * 2)

    async def test_a_slow_consumer_delays_no_other_group(self, stage: Stage) -> None:
        sent = [message(uuid4(), 1, "provider_succeeded") for _ in range(20)]
        await stage.publisher.publish(sent)
        async with (
            stage.consumer.subscribe("media", visibility=VISIBILITY) as slow,
            stage.consumer.subscribe(GROUP) as quick,
        ):
            await take(slow, 20, ack=False)
            assert len(await take(quick, 20)) == 20

    async def test_a_late_acknowledgement_is_no_error(self, stage: Stage) -> None:
        await stage.publisher.publish([message(uuid4(), 1)])
        async with stage.consumer.subscribe(GROUP, visibility=VISIBILITY) as subscription:
            first = await take(subscription, 1, ack=False)
            second = await take(subscription, 1)
            await subscription.ack(first)
            await subscription.ack(second)
            assert await nothing_comes(subscription, VISIBILITY * 1.5)

    async def test_a_published_twice_message_comes_twice_with_one_event_id(
        self, stage: Stage
    ) -> None:
        sent = message(uuid4(), 1)
        await stage.publisher.publish([sent])
        await stage.publisher.publish([sent])
        async with stage.consumer.subscribe(GROUP) as subscription:
            got = await take(subscription, 2)
        assert {one.message.body["event_id"] for one in got} == {sent.body["event_id"]}

    async def test_poison_blocks_its_own_task_only(self, stage: Stage) -> None:
        sick, well = uuid4(), uuid4()
        batch = [
            message(sick, 1),
            message(well, 1),
            stage.poison(sick),
            message(sick, 3),
            message(well, 2),
        ]
        fates = [receipt.fate for receipt in await stage.publisher.publish(batch)]
        assert fates == [Fate.SENT, Fate.SENT, Fate.POISON, Fate.FAILED, Fate.SENT]
        async with stage.consumer.subscribe(GROUP) as subscription:
            got = [one.message for one in await take(subscription, 3)]
            assert await nothing_comes(subscription)
        assert versions(got, sick) == [1]
        assert versions(got, well) == [1, 2]

    async def test_an_outage_fails_everything_and_blames_nothing(self, stage: Stage) -> None:
        batch = [message(uuid4(), 1) for _ in range(3)]
        async with stage.outage(), asyncio.timeout(PATIENCE):
            receipts = await stage.publisher.publish(batch)
        assert [receipt.fate for receipt in receipts] == [Fate.FAILED] * 3
        await eventually_sent(stage.publisher, batch)
        async with stage.consumer.subscribe(GROUP) as subscription:
            got = await take(subscription, 3, patient=True)
        assert {one.message.body["event_id"] for one in got} == {
            one.body["event_id"] for one in batch
        }

    async def test_a_subscription_survives_an_outage(self, stage: Stage) -> None:
        sent = message(uuid4(), 1)
        async with stage.consumer.subscribe(GROUP) as subscription:
            assert await nothing_comes(subscription, 0.2)
            async with stage.outage():
                pass
            await eventually_sent(stage.publisher, [sent])
            (got,) = await take(subscription, 1, patient=True)
        assert got.message == sent

    async def test_leaving_is_bounded_in_an_outage(self, stage: Stage) -> None:
        async with asyncio.timeout(PATIENCE), stage.outage():
            async with stage.consumer.subscribe(GROUP):
                await asyncio.sleep(0)


def _by_event(one: Message) -> int:
    event_id: int = one.body["event_id"]
    return event_id


async def eventually_sent(bus: Bus, messages: Sequence[Message]) -> None:
    async def sent() -> bool:
        return {receipt.fate for receipt in await bus.publish(messages)} == {Fate.SENT}

    check: Callable[[], bool | Awaitable[bool]] = sent
    await eventually_async(check, PATIENCE)


async def _drain(subscription: Subscription) -> list[Message]:
    got: list[Message] = []
    while batch := await subscription.receive(5, 1.0):
        await subscription.ack(batch)
        got += [one.message for one in batch]
    return got
