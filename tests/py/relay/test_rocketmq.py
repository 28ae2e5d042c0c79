"""The bus on a real RocketMQ keeps the contract of `relay.bus`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from relay import rocketmq
from relay.bus import BusDown, Fate, Message
from relay.buses import Rocketmq
from tests.py.relay.contract import (
    GROUP,
    BusContract,
    Stage,
    eventually_sent,
    message,
    take,
    versions,
)
from tests.py.support.rocketmq import Broker

pytestmark = pytest.mark.xdist_group("rocketmq")


def poison(task: UUID) -> Message:
    good = message(task, 2)
    return Message(task, good.tag, {**good.body, "padding": "x" * 5_000_000})


@pytest.fixture
def where(broker: Broker) -> Iterator[Rocketmq]:
    where = broker.topic()
    yield where
    broker.ready()
    broker.drop(where)


@pytest.fixture
async def stage(database: str, broker: Broker, where: Rocketmq) -> AsyncIterator[Stage]:
    @asynccontextmanager
    async def outage() -> AsyncIterator[None]:
        with broker.hung():
            yield

    async with (
        rocketmq.publisher(where) as publisher,
        rocketmq.consumer(where, database) as consumer,
    ):
        yield Stage(publisher, consumer, poison, outage)


class TestRocketmq(BusContract):
    """Everything of the contract, on a real broker."""


async def test_a_killed_broker_is_forgotten_in_seconds(stage: Stage, broker: Broker) -> None:
    tasks = [uuid4() for _ in range(4)]
    async with stage.consumer.subscribe(GROUP, visibility=2.0) as subscription:
        assert await stage.publisher.publish([message(task, 1) for task in tasks])
        await take(subscription, 4)
        await asyncio.to_thread(broker.kill)
        down = await stage.publisher.publish([message(task, 2) for task in tasks])
        assert {receipt.fate for receipt in down} == {Fate.FAILED}
        with pytest.raises(BusDown):
            await subscription.receive(1, 1.0)
        await asyncio.to_thread(broker.start)

        up_at = time.monotonic()
        await eventually_sent(stage.publisher, [message(task, 2) for task in tasks])
        got: list[Message] = []
        # An acknowledgement that the broker had not written yet is forgotten: then 1 comes again.
        while any(2 not in versions(got, task) for task in tasks):
            got += [one.message for one in await take(subscription, 1, patient=True)]
        assert time.monotonic() - up_at < 20.0
    for task in tasks:
        assert sorted(set(versions(got, task))) in ([2], [1, 2])
