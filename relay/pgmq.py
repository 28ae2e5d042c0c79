"""
The embedded bus: queues of pgmq in the same database, reached through the bus_ functions only.

A batch is one transaction, so it keeps the order of every task in it and is sent whole or not at
all. Readers sleep on the doorbell aivedio_bus, one bell for each group.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
import psycopg

from edge import database, errors, logs
from edge.backoff import Backoff, pause
from edge.database import Database
from edge.doorbell import AGAIN, IDLE, Doorbell
from relay.bus import BusDown, Delivery, Fate, Message, Receipt

logger = logs.get(__name__)

PUBLISHER: Final = "aivedio_relay"
CONSUMER: Final = "aivedio_consumer"
CHANNEL: Final = "aivedio_bus"

# A reader without demand keeps its bell silent this long; then writers ring again.
LINGER = 0.05
LEAVE_WITHIN = 3.0
# No bell rings for a message that is due again because its reader died.
SAFETY = (1.0, 2.0)

_SENT = Receipt(Fate.SENT)


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """Mirror of the SQL type aivedio.outbox_message, as bus_publish takes it."""

    task_id: UUID
    tag: str
    body: Mapping[str, Any]
    id: int = 0
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class BusMessage:
    """Mirror of the SQL type aivedio.bus_message."""

    msg_id: int
    read_count: int
    task_id: UUID
    tag: str
    body: Mapping[str, Any]


@asynccontextmanager
async def connect(conninfo: str, *, role: str) -> AsyncIterator[PgmqBus]:
    """Open the embedded bus as PUBLISHER or CONSUMER; the database need not answer yet."""
    composites = {"outbox_message": OutboxMessage} if role == PUBLISHER else None
    async with database.connect(conninfo, role=role, max_size=2, composites=composites) as db:
        yield PgmqBus(conninfo, db)


class PgmqBus:
    """The bus on pgmq; `connect` makes one."""

    batch_limit = 500
    parallel = 1

    def __init__(self, conninfo: str, db: Database) -> None:
        self._conninfo = conninfo
        self._db = db

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        """
        Send messages in as few transactions as possible; see `Bus.publish`.

        A batch that is refused is halved until the message to blame stands alone.
        """
        receipts: dict[int, Receipt] = {}
        blocked: dict[UUID, Receipt] = {}
        parts = [range(len(messages))] if messages else []
        while parts:
            part = parts.pop()
            places = [place for place in part if messages[place].task_id not in blocked]
            receipt = await self._send([messages[place] for place in places])
            if receipt.fate is Fate.POISON and len(places) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
                continue
            receipts.update(dict.fromkeys(places, receipt))
            if receipt.fate is not Fate.SENT:
                blocked.update((messages[place].task_id, receipt) for place in places)
            if receipt.fate is Fate.FAILED:
                break
        untried = Receipt(Fate.FAILED, "not tried: an earlier message was not sent")
        return [receipts.get(place, untried) for place in range(len(messages))]

    async def _send(self, messages: list[Message]) -> Receipt:
        if not messages:
            return _SENT
        rows = [OutboxMessage(message.task_id, message.tag, message.body) for message in messages]
        try:
            await self._db.value("bus_publish", p_messages=rows)
        except errors.Unavailable as error:
            return Receipt(Fate.FAILED, errors.describe(error))
        except (errors.EdgeError, psycopg.Error, orjson.JSONEncodeError) as error:
            return Receipt(Fate.POISON, errors.describe(error))
        return _SENT

    @asynccontextmanager
    async def subscribe(
        self, group: str, *, visibility: float = 30.0
    ) -> AsyncIterator[PgmqSubscription]:
        """Join a consumer group for the length of the block; see `Bus.subscribe`."""
        subscription = PgmqSubscription(self._conninfo, self._db, group, visibility)
        stopping = asyncio.Event()
        serving = asyncio.create_task(subscription.serve(stopping))
        try:
            yield subscription
        finally:
            stopping.set()
            await asyncio.wait({serving}, timeout=LEAVE_WITHIN)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await subscription.give_back()


class Queue:
    """A group's queue in the database: one stored function for each thing that can be done."""

    def __init__(self, db: Database, group: str) -> None:
        self._db = db
        self._group = group

    async def bell(self) -> int:
        """Return the number of the bell that rings for new messages."""
        return int(await self._db.value("bus_bell", p_group=self._group))

    async def read(self, limit: int, visibility: float) -> list[Delivery]:
        """Take what is due, oldest first; raises what `Database` raises."""
        rows = await self._db.rows(
            BusMessage,
            "bus_read",
            p_group=self._group,
            p_limit=limit,
            p_visibility_s=visibility,
        )
        return [
            Delivery(Message(row.task_id, row.tag, row.body), row.read_count, row.msg_id)
            for row in rows
        ]

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """End deliveries."""
        if deliveries:
            ids = [delivery.handle for delivery in deliveries]
            await self._call("bus_ack", p_ids=ids)

    async def retry(self, delivery: Delivery, delay: float) -> None:
        """Make a message due after `delay` seconds."""
        await self._call("bus_retry", p_id=delivery.handle, p_delay_s=delay)

    async def bury(self, delivery: Delivery, error: str) -> None:
        """Make a message a dead letter."""
        await self._call("bus_dead", p_id=delivery.handle, p_error=error)

    async def _call(self, function: str, **arguments: object) -> None:
        try:
            await self._db.value(function, p_group=self._group, **arguments)
        except errors.EdgeError as error:
            raise BusDown(errors.describe(error)) from error


class PgmqSubscription:
    """
    One reader of a group's queue.

    The doorbell calls `_look`, which reads only when `receive` wants something: so a slow
    consumer hides no message that another could have, and lets writers ring for the others.
    """

    def __init__(self, conninfo: str, db: Database, group: str, visibility: float) -> None:
        self.visibility = visibility
        self._conninfo = conninfo
        self._queue = Queue(db, group)
        self._group = group
        self._bell: Doorbell | None = None
        self._limit = 0
        self._answer: asyncio.Future[list[Delivery]] | None = None
        self._wanted = asyncio.Event()
        self._unasked = False
        self._spare: list[Delivery] = []
        self._retry_at: float | None = None

    async def receive(self, limit: int, within: float) -> list[Delivery]:
        """Return up to `limit` messages, oldest first; none if none came `within` seconds."""
        if self._spare:
            taken, self._spare = self._spare[:limit], self._spare[limit:]
            return taken
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._limit = limit
        self._wanted.set()
        if self._unasked and self._bell is not None:
            self._bell.shake()
        try:
            # Not a timeout around the future: that could discard messages at the last moment.
            await asyncio.wait({answer}, timeout=within)
            return answer.result() if answer.done() else []
        finally:
            self._answer = None
            self._wanted.clear()

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """End deliveries whose effect is committed. One that is gone already is no error."""
        await self._queue.ack(deliveries)

    async def retry(self, delivery: Delivery, delay: float) -> None:
        """Have the message delivered again, `delay` seconds from now."""
        await self._queue.retry(delivery, delay)
        due = asyncio.get_running_loop().time() + delay
        self._retry_at = due if self._retry_at is None else min(self._retry_at, due)
        if self._bell is not None:
            self._bell.shake()

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Hide deliveries for another `visibility` seconds: their effect takes long."""
        for delivery in deliveries:
            await self._queue.retry(delivery, self.visibility)

    async def bury(self, delivery: Delivery, error: str) -> None:
        """Make the message a dead letter, with the reason; it is not delivered again."""
        await self._queue.bury(delivery, error)

    async def serve(self, stopping: asyncio.Event) -> None:
        """Read on demand until `stopping`."""
        backoff = Backoff()
        while not stopping.is_set():
            try:
                number = await self._queue.bell()
            except (errors.EdgeError, psycopg.Error) as error:
                logger.warning("bus not reached", group=self._group, kind=type(error).__name__)
                self._fail(error)
                await pause(backoff.next(), stopping)
                continue
            self._bell = Doorbell(
                self._conninfo,
                role=CONSUMER,
                channel=CHANNEL,
                shards=[number],
                hears={self._group},
                safety=SAFETY,
            )
            await self._bell.serve(self._look, stopping=stopping)

    async def give_back(self) -> None:
        """Let others have at once what was read but never asked for."""
        for delivery in self._spare:
            try:
                await self.retry(delivery, 0.0)
            except BusDown:
                return

    async def _look(self) -> float | None:
        if not self._wanted.is_set():
            try:
                async with asyncio.timeout(LINGER):
                    await self._wanted.wait()
            except TimeoutError:
                self._unasked = True
                return IDLE
        self._unasked = False
        try:
            deliveries = await self._queue.read(self._limit, self.visibility)
        except (errors.EdgeError, psycopg.Error) as error:
            self._fail(error)
            raise
        if not deliveries:
            return self._until_retry()
        if self._answer is None or self._answer.done():
            # The caller's time was up while we read.
            self._spare += deliveries
        else:
            self._answer.set_result(deliveries)
            self._answer = None
            self._wanted.clear()
        return AGAIN

    def _until_retry(self) -> float | None:
        """Return when to look for a message that this reader itself put back."""
        if self._retry_at is None:
            return IDLE
        wait = self._retry_at - asyncio.get_running_loop().time()
        if wait > 0:
            return wait
        self._retry_at = None
        return AGAIN

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(BusDown(errors.describe(error)))
