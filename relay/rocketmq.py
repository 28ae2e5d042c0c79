"""
The bus on a RocketMQ cluster: a topic of type FIFO, whose message group is the task.

Sending keeps one message of a task in flight and many tasks side by side, since the broker orders
by arrival. Consumer groups receive with an invisible time and acknowledge in batches. Dead letters
are kept in PostgreSQL with those of the embedded bus, so operators have one set of functions; what
they requeue, and what was left on the embedded bus when RocketMQ was turned on, consumers read
from there.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID, uuid4

import orjson

from edge import database
from edge.database import Database
from relay import pgmq
from relay.bus import BusDown, Fate, Message, Receipt
from relay.buses import Rocketmq
from relay.rocketmq_cluster import Cluster
from relay.rocketmq_node import Access, code_name
from relay.rocketmq_protocol import DEFINITION, MESSAGES
from relay.rocketmq_subscription import RocketmqSubscription

SEND_WITHIN: Final = 3.0
WINDOW: Final = 64

# What a broker says of a message, and would say of it again.
_POISON: Final = frozenset(
    getattr(DEFINITION, name)
    for name in (
        "ILLEGAL_MESSAGE_TAG",
        "ILLEGAL_MESSAGE_KEY",
        "ILLEGAL_MESSAGE_GROUP",
        "ILLEGAL_MESSAGE_PROPERTY_KEY",
        "ILLEGAL_MESSAGE_ID",
        "MESSAGE_CORRUPTED",
        "PAYLOAD_TOO_LARGE",
        "MESSAGE_BODY_TOO_LARGE",
        "MESSAGE_BODY_EMPTY",
        "MESSAGE_PROPERTIES_TOO_LARGE",
    )
)
_SENT: Final = Receipt(Fate.SENT)
_UNTRIED: Final = Receipt(Fate.FAILED, "not tried: an earlier one was not sent")


@asynccontextmanager
async def publisher(where: Rocketmq) -> AsyncIterator[RocketmqBus]:
    """Open the bus to send to; the cluster need not answer yet."""
    cluster = _cluster(where)
    try:
        yield RocketmqBus(where, cluster)
    finally:
        await cluster.close()


@asynccontextmanager
async def consumer(where: Rocketmq, conninfo: str) -> AsyncIterator[RocketmqBus]:
    """Open the bus to subscribe to; neither the cluster nor the database need answer yet."""
    async with database.connect(conninfo, role=pgmq.CONSUMER, max_size=2) as db:
        cluster = _cluster(where)
        try:
            yield RocketmqBus(where, cluster, db)
        finally:
            await cluster.close()


class RocketmqBus:
    """The bus on RocketMQ; `publisher` and `consumer` make one."""

    # One batch at a time, whose tasks go side by side: with several in flight, the relay would read
    # the rows of busy tasks again and again.
    batch_limit = 250
    parallel = 1

    def __init__(self, where: Rocketmq, cluster: Cluster, db: Database | None = None) -> None:
        self._where = where
        self._cluster = cluster
        self._db = db
        self._window = asyncio.Semaphore(WINDOW)

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        """Send the tasks of a batch side by side; see `Bus.publish`."""
        receipts = [_UNTRIED] * len(messages)
        lanes: dict[UUID, list[int]] = {}
        for place, message in enumerate(messages):
            lanes.setdefault(message.task_id, []).append(place)
        waiting = iter(lanes.values())
        down: set[str] = set()

        async def work() -> None:
            for places in waiting:
                for place in places:
                    receipts[place] = receipt = await self._send(messages[place], down)
                    if receipt.fate is not Fate.SENT:
                        break

        async with asyncio.TaskGroup() as group:
            for _ in range(min(WINDOW, len(lanes))):
                group.create_task(work())
        return receipts

    async def _send(self, message: Message, down: set[str]) -> Receipt:
        """Send one message, unless its broker is among those that are `down`; note a new one."""
        try:
            request = _request(self._where.topic, message)
        except (TypeError, ValueError) as error:
            return Receipt(Fate.POISON, type(error).__name__)
        name = ""
        try:
            broker = (await self._cluster.route()).writer(message.task_id)
            name = broker.name
            async with self._window:
                if name in down:
                    return _UNTRIED
                answer = await broker.node.call("SendMessage", request, SEND_WITHIN)
        except BusDown as error:
            down.add(name)
            return Receipt(Fate.FAILED, str(error))
        if answer.status.code == DEFINITION.OK:
            return _SENT
        if answer.status.code in _POISON:
            return Receipt(Fate.POISON, code_name(answer.status))
        down.add(name)
        return Receipt(Fate.FAILED, code_name(answer.status))

    @asynccontextmanager
    async def subscribe(
        self, group: str, *, visibility: float = 30.0
    ) -> AsyncIterator[RocketmqSubscription]:
        """Join a consumer group for the length of the block; see `Bus.subscribe`."""
        if self._db is None:
            raise ValueError("a publisher's bus has no consumers")
        # A client of its own: servers remember a client's settings by its name.
        cluster = _cluster(self._where)
        subscription = RocketmqSubscription(
            cluster, self._db, group, self._where.group(group), visibility
        )
        try:
            yield subscription
        finally:
            await subscription.leave()
            await cluster.close()


def _cluster(where: Rocketmq) -> Cluster:
    """Return the cluster as a new client of it."""
    client_id = f"{socket.gethostname()}@{os.getpid()}@{uuid4().hex[:12]}"
    access = Access(client_id, where.access_key, where.secret_key, where.tls)
    return Cluster(where.endpoints, where.topic, access)


def _request(topic: str, message: Message) -> Any:
    key = str(message.task_id)
    return MESSAGES.SendMessageRequest(
        messages=[
            DEFINITION.Message(
                topic=DEFINITION.Resource(name=topic),
                body=orjson.dumps(message.body),
                system_properties=DEFINITION.SystemProperties(
                    tag=message.tag,
                    keys=[key],
                    message_id=uuid4().hex.upper(),
                    message_type=DEFINITION.FIFO,
                    message_group=key,
                    body_encoding=DEFINITION.IDENTITY,
                ),
            )
        ]
    )
