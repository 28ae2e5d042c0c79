"""
A member of a consumer group on RocketMQ.

Asking for messages is a long poll. It goes on when `receive` gives up waiting, and what it brings
is handed out by the next `receive`. Only servers that know us are asked.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
import psycopg

from edge import errors, logs
from edge.database import Database
from relay.bus import BEAT_KEY, BusDown, Delivery, Message
from relay.pgmq import Queue
from relay.rocketmq_cluster import Broker, Cluster
from relay.rocketmq_conversation import Conversation, first_known
from relay.rocketmq_node import ANSWER_WITHIN, Node, code_name
from relay.rocketmq_protocol import DEFINITION, MESSAGES

logger = logs.get(__name__)

# What one call may bring, and how many calls to a broker wait side by side.
AT_ONCE: Final = 32
LANES: Final = 4
POLL: Final = 5.0
POLL_GRACE: Final = 4.0
LEAVE_WITHIN: Final = 1.0
# How often messages are looked for that operators have requeued.
RETURNED_EVERY: Final = 1.0

_GONE: Final = (
    DEFINITION.OK,
    DEFINITION.INVALID_RECEIPT_HANDLE,
    DEFINITION.MESSAGE_NOT_FOUND,
)


@dataclass(slots=True)
class Handle:
    """How the broker knows a delivery; a new receipt replaces the old one when its time changes."""

    node: Node
    message_id: str
    receipt: str
    until: float


class RocketmqSubscription:
    """One member of a group; `RocketmqBus.subscribe` makes one."""

    def __init__(
        self,
        cluster: Cluster,
        db: Database,
        name: str,
        group: str,
        visibility: float,
    ) -> None:
        self.visibility = visibility
        self._cluster = cluster
        self._db = db
        self._returned = Queue(db, name)
        self._name = name
        self._group = DEFINITION.Resource(name=group)
        self._topic = DEFINITION.Resource(name=cluster.topic)
        self._filter: Any = None
        self._max_tries = 0
        self._conversations: dict[Node, Conversation] = {}
        self._polls: dict[asyncio.Task[list[Delivery]], Broker] = {}
        self._spare: list[Delivery] = []
        self._seen: OrderedDict[str, int] = OrderedDict()
        self._look_at = 0.0

    async def receive(self, limit: int, within: float) -> list[Delivery]:
        """Return up to `limit` messages, oldest first; none if none came `within` seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        if returned := await self._look(limit):
            return returned
        while not self._spare:
            await self._poll(limit)
            done, _ = await asyncio.wait(
                self._polls,
                timeout=max(0.0, deadline - loop.time()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            for poll in done:
                del self._polls[poll]
            self._keep(done)
            if not self._spare and loop.time() >= deadline:
                return []
        return await self._hand_out(limit)

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """End deliveries whose effect is committed. One that is gone already is no error."""
        await self._returned.ack([one for one in deliveries if isinstance(one.handle, int)])
        by_node: dict[Node, list[Handle]] = {}
        for delivery in deliveries:
            if isinstance(delivery.handle, Handle):
                by_node.setdefault(delivery.handle.node, []).append(delivery.handle)
        for node, handles in by_node.items():
            request = MESSAGES.AckMessageRequest(
                group=self._group,
                topic=self._topic,
                entries=[
                    MESSAGES.AckMessageEntry(message_id=one.message_id, receipt_handle=one.receipt)
                    for one in handles
                ],
            )
            answer = await node.call("AckMessage", request, ANSWER_WITHIN)
            for status in [entry.status for entry in answer.entries] or [answer.status]:
                if status.code not in _GONE:
                    raise BusDown(code_name(status))
            for handle in handles:
                self._seen.pop(handle.message_id, None)

    async def retry(self, delivery: Delivery, delay: float) -> None:
        """Have the message delivered again, `delay` seconds from now."""
        if isinstance(delivery.handle, Handle):
            await self._hide(delivery.handle, delay)
        else:
            await self._returned.retry(delivery, delay)

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Hide deliveries for another `visibility` seconds: their effect takes long."""
        for delivery in deliveries:
            await self.retry(delivery, self.visibility)

    async def bury(self, delivery: Delivery, error: str) -> None:
        """Make the message a dead letter, with the reason; it is not delivered again."""
        if not isinstance(delivery.handle, Handle):
            await self._returned.bury(delivery, error)
            return
        message = delivery.message
        try:
            await self._db.value(
                "bus_bury",
                p_group=self._name,
                p_task=message.task_id,
                p_tag=message.tag,
                p_body=dict(message.body),
                p_tries=delivery.tries,
                p_error=error,
            )
        except errors.EdgeError as unavailable:
            raise BusDown(errors.describe(unavailable)) from unavailable
        await self.ack([delivery])

    async def leave(self) -> None:
        """Let others have what was not handed out, and say goodbye, in bounded time."""
        for poll in self._polls:
            poll.cancel()
        await asyncio.gather(*self._polls, return_exceptions=True)
        with suppress(TimeoutError, BusDown):
            async with asyncio.timeout(LEAVE_WITHIN):
                for delivery in self._spare:
                    await self.retry(delivery, 0.0)
        await asyncio.gather(*(one.close() for one in self._conversations.values()))

    # What comes back from the database

    async def _look(self, limit: int) -> list[Delivery]:
        """Return messages that operators have requeued; none while PostgreSQL does not answer."""
        now = asyncio.get_running_loop().time()
        if now < self._look_at:
            return []
        self._look_at = now + RETURNED_EVERY
        try:
            return await self._returned.read(limit, self.visibility)
        except (errors.EdgeError, psycopg.Error) as error:
            logger.warning("requeued messages not looked for", **errors.facts(error))
            return []

    # Asking for messages

    async def _poll(self, limit: int) -> None:
        """Have enough calls waiting at every broker that knows us; raise BusDown if none does."""
        if self._filter is None:
            await self._learn()
        brokers = (await self._cluster.route()).readable
        conversations = [self._conversation(broker.node) for broker in brokers]
        await first_known(conversations)
        for broker, conversation in zip(brokers, conversations, strict=True):
            if not conversation.known.is_set():
                continue
            # Several calls at once mix the order of a queue, unless the broker itself keeps it.
            lanes = min(LANES, max(1, limit // AT_ONCE)) if conversation.orderly else 1
            waiting = sum(asked.name == broker.name for asked in self._polls.values())
            for _ in range(lanes - waiting):
                poll = asyncio.create_task(self._ask(broker, min(limit, AT_ONCE)))
                self._polls[poll] = broker
        if not self._polls:
            raise BusDown("no server knows this client any more")

    async def _ask(self, broker: Broker, limit: int) -> list[Delivery]:
        request = MESSAGES.ReceiveMessageRequest(
            group=self._group,
            message_queue=broker.queue,
            filter_expression=self._filter,
            batch_size=limit,
        )
        request.invisible_duration.FromMilliseconds(round(self.visibility * 1000))
        request.long_polling_timeout.FromMilliseconds(round(POLL * 1000))
        deliveries: list[Delivery] = []
        try:
            async for part in broker.node.stream("ReceiveMessage", request, POLL + POLL_GRACE):
                if part.HasField("message"):
                    deliveries.append(self._delivery(broker.node, part.message))
                elif part.HasField("status") and part.status.code not in _GONE:
                    self._conversations[broker.node].again()
                    raise BusDown(code_name(part.status))
        except BusDown:
            if not deliveries:
                raise
        return deliveries

    def _delivery(self, node: Node, raw: Any) -> Delivery:
        properties = raw.system_properties
        known = self._seen.get(properties.message_id, 0) + 1
        self._seen[properties.message_id] = known
        if len(self._seen) > 10_000:
            self._seen.popitem(last=False)
        until = asyncio.get_running_loop().time() + self.visibility / 2
        handle = Handle(node, properties.message_id, properties.receipt_handle, until)
        # For an orderly group the broker does not count.
        return Delivery(_message(raw), max(known, properties.delivery_attempt), handle)

    def _keep(self, polls: set[asyncio.Task[list[Delivery]]]) -> None:
        """Keep what calls have brought; raise what one met if none brought anything."""
        failure: BaseException | None = None
        for poll in polls:
            if error := poll.exception():
                failure = error
            else:
                self._spare += poll.result()
        if failure is not None and not self._spare:
            raise failure

    async def _hand_out(self, limit: int) -> list[Delivery]:
        """Return spare messages that are still ours; one that came too often is buried."""
        now = asyncio.get_running_loop().time()
        taken, self._spare = self._spare[:limit], self._spare[limit:]
        fit = []
        for delivery in taken:
            if delivery.tries > self._max_tries:
                await self.bury(delivery, f"read {self._max_tries} times and never acknowledged")
            elif delivery.handle.until > now:
                fit.append(delivery)
        return fit

    async def _hide(self, handle: Handle, seconds: float) -> None:
        request = MESSAGES.ChangeInvisibleDurationRequest(
            group=self._group,
            topic=self._topic,
            receipt_handle=handle.receipt,
            message_id=handle.message_id,
        )
        request.invisible_duration.FromMilliseconds(max(1, math.ceil(seconds * 1000)))
        answer = await handle.node.call("ChangeInvisibleDuration", request, ANSWER_WITHIN)
        if answer.status.code not in _GONE:
            raise BusDown(code_name(answer.status))
        handle.receipt = answer.receipt_handle or handle.receipt

    # Being known

    async def _learn(self) -> None:
        try:
            group = await self._db.value("bus_group", p_group=self._name)
        except errors.EdgeError as error:
            raise BusDown(errors.describe(error)) from error
        self._max_tries = group["max_tries"]
        self._filter = DEFINITION.FilterExpression(
            type=DEFINITION.TAG, expression=" || ".join(group["tags"] or ["*"])
        )

    def _conversation(self, node: Node) -> Conversation:
        if node not in self._conversations:
            wishes = DEFINITION.Subscription(
                group=self._group,
                subscriptions=[
                    DEFINITION.SubscriptionEntry(topic=self._topic, expression=self._filter)
                ],
            )
            wishes.long_polling_timeout.FromMilliseconds(round(POLL * 1000))
            self._conversations[node] = Conversation(node, wishes)
        return self._conversations[node]


def _message(raw: Any) -> Message:
    """Return the message; what is none of ours keeps its bytes, and its consumer refuses it."""
    properties = raw.system_properties
    try:
        body = orjson.loads(raw.body)
        task = UUID(properties.message_group or properties.keys[0])
        if isinstance(body, dict):
            return Message(task, properties.tag, body)
    except (orjson.JSONDecodeError, ValueError, IndexError):
        pass
    foreign = {"foreign": raw.body[:4096].decode(errors="replace").replace("\0", "")}
    return Message(BEAT_KEY, properties.tag, foreign)
