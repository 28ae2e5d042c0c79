"""
The outbox relay (stage 60): what PostgreSQL committed reaches the bus, at least once, in order.

    read    rows of the owned shards, oldest first, no lock held, no transaction open
    send    tasks side by side, but never two batches that share a task
    mark    after the bus's acknowledgement, in the session that owns the shard

A crash between send and mark sends a message again with the same event_id. A message that the
bus refuses for what it is counts a try and is parked in the end, with an alarm; meanwhile its
task waits and others flow. A bus that does not answer parks nothing and counts nothing, however
long: everything then drains in order.

Once a second a beat goes through the bus too, so that a gateway can tell silence from idleness.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID, uuid4

from prometheus_client import Counter, Gauge, Histogram

from edge import errors, logs
from edge.backoff import Backoff, pause
from edge.doorbell import AGAIN, IDLE, Doorbell
from relay import buses
from relay.bus import BEAT, BEAT_KEY, Bus, Fate, Message, Receipt
from relay.buses import Rocketmq
from relay.owner import HEARTBEAT, IDLE_LIMIT, Owner, Row

logger = logs.get(__name__)

BEAT_INTERVAL: Final = 1.0
# While sends are in flight, other tasks' new rows are looked for this often.
LOOK_WHILE_SENDING: Final = 0.025
SETTLE_WITHIN: Final = 8.0
# How long an acknowledged row that could not be marked is remembered, not to send it again.
REMEMBER_FOR: Final = 60.0
DEEPEST_READ: Final = 8000
# Writers may find the bell held by a relay that hangs: then looks must not be rare.
SAFETY: Final = (0.5, 1.0)

SENT = Counter("aivedio_relay_messages_total", "Outbox messages by what the bus said.", ["fate"])
PARKED = Counter("aivedio_relay_parked_total", "Outbox rows parked after too many refusals.")
BEATS = Counter("aivedio_relay_beats_total", "Beats by what the bus said.", ["fate"])
SECONDS = Histogram(
    "aivedio_relay_publish_seconds",
    "Time of one batch to the bus.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
)
BUS_UP = Gauge("aivedio_relay_bus_up", "1 while the bus takes messages.")


async def run(
    *,
    database_url: str,
    rocketmq: Rocketmq | None = None,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """Relay until `stopping`."""
    async with buses.publisher(database_url, rocketmq) as bus:
        await Relay(database_url, bus).run(stopping, ready)


class Relay:
    """Sends the shards that its `Owner` owns."""

    def __init__(self, conninfo: str, bus: Bus) -> None:
        self._conninfo = conninfo
        self._bus = bus
        self._name = uuid4().hex[:8]
        self._owner = Owner(conninfo)
        self._bell: Doorbell | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._in_flight: Tally[int] = Tally()
        self._busy: set[UUID] = set()
        self._outage = Backoff(0.1, 5.0)
        self._resume_at = 0.0
        self._held: dict[UUID, tuple[float, Backoff]] = {}
        self._acknowledged: dict[int, float] = {}
        self._first = 0
        self._lost = False
        self._changed = asyncio.Event()

    @property
    def shards(self) -> list[int]:
        """The shards that this relay sends now."""
        return self._owner.shards

    async def run(self, stopping: asyncio.Event, ready: Callable[[bool], None]) -> None:
        """Own shards and send them, again after every loss of the session, until `stopping`."""
        backoff = Backoff(0.1, 5.0)
        beating = asyncio.create_task(self._beat(stopping))
        try:
            while not stopping.is_set():
                try:
                    await self._owner.open()
                    await self._owner.balance(())
                    backoff.reset()
                    await self._reign(stopping, ready)
                except errors.EdgeError as error:
                    logger.warning("ownership lost", kind=type(error).__name__, code=error.code)
                    ready(False)
                finally:
                    # The next owner, perhaps ourselves, must not have a task in flight beside us.
                    await self._settle()
                    await self._owner.close()
                if not stopping.is_set():
                    await pause(backoff.next(), stopping)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _reign(self, stopping: asyncio.Event, ready: Callable[[bool], None]) -> None:
        """Serve the bells of what is owned, and begin again whenever that changes."""
        self._lost = False
        self._held.clear()
        old = asyncio.get_running_loop().time() - REMEMBER_FOR
        self._acknowledged = {row: at for row, at in self._acknowledged.items() if at > old}
        heart = asyncio.create_task(self._keep_balance(stopping))
        try:
            while not (self._lost or heart.done()):
                self._changed.clear()
                self._bell = Doorbell(
                    self._conninfo,
                    role="aivedio_relay",
                    channel="aivedio_outbox",
                    shards=self._owner.shards,
                    safety=SAFETY,
                    settings={"idle_session_timeout": f"{round(IDLE_LIMIT * 1000)}"},
                )
                await self._bell.serve(self._look, stopping=self._changed, ready=ready)
        finally:
            heart.cancel()
            (outcome,) = await asyncio.gather(heart, return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome

    async def _keep_balance(self, stopping: asyncio.Event) -> None:
        """Beat the owning session's heart; end when it is lost or the relay stops."""
        try:
            while not await pause(HEARTBEAT, stopping):
                try:
                    if await self._owner.balance(self._in_flight):
                        self._changed.set()
                except (errors.Contended, errors.TooSlow) as error:
                    logger.warning("shards not balanced", kind=type(error).__name__)
        finally:
            self._changed.set()

    async def _look(self) -> float | None:
        """Start what can be started: one look of the doorbell."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._resume_at:
            return self._resume_at - loop.time()
        capacity = self._bus.parallel - len(self._sending)
        try:
            if capacity and self._start(await self._owed(capacity), capacity) and capacity > 1:
                return AGAIN
        except errors.DatabaseDown:
            self._lose()
            raise
        if not self._sending:
            return IDLE
        await asyncio.wait(
            self._sending, timeout=LOOK_WHILE_SENDING, return_when=asyncio.FIRST_COMPLETED
        )
        return AGAIN

    async def _owed(self, capacity: int) -> list[Row]:
        """
        Return rows that may be sent now, enough to fill `capacity` batches if there are.

        A task that is busy at any moment of the reading is left out: its row may have been marked
        just after we read it.
        """
        busy = frozenset(self._busy)
        now = asyncio.get_running_loop().time()
        shards = self._owner.shards
        self._first += 1
        turn = self._first % max(1, len(shards))
        wanted = limit = capacity * self._bus.batch_limit
        while True:
            rows = await self._owner.read(shards[turn:] + shards[:turn], limit)
            free = [
                row
                for row in rows
                if row.message.task_id not in busy
                and self._held.get(row.message.task_id, (0.0,))[0] <= now
            ]
            if len(rows) < limit or len(free) >= wanted or limit >= DEEPEST_READ:
                break
            # Tasks that cannot be sent fill the head: look past them. Never by pages: between two
            # reads a task's first row may commit behind the first page.
            limit *= 4
        acknowledged = [
            row
            for row in free
            if self._acknowledged.get(row.id, -REMEMBER_FOR) + REMEMBER_FOR > now
        ]
        await self._mark(acknowledged)
        known = {row.id for row in acknowledged}
        return [
            row
            for row in free[:wanted]
            if row.message.task_id not in self._busy and row.id not in known
        ]

    def _start(self, rows: Sequence[Row], capacity: int) -> bool:
        """Send rows, split into batches; return whether there were any."""
        if not rows:
            return False
        self._owner.require_fresh()
        for batch in _batches(rows, self._bus.batch_limit, capacity):
            self._busy.update(row.message.task_id for row in batch)
            self._in_flight.update(row.shard for row in batch)
            sending = asyncio.create_task(self._send(batch))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
        return True

    async def _send(self, batch: list[Row]) -> None:
        try:
            with SECONDS.time():
                receipts = await self._bus.publish([row.message for row in batch])
            await self._note(batch, receipts)
        except errors.DatabaseDown as error:
            # Sent, perhaps, but not marked: whoever owns the shard next may send it again.
            logger.warning("sent but not marked", kind=type(error).__name__, code=error.code)
            self._lose()
        except Exception:
            logger.exception("sending failed")
            self._lose()
        finally:
            self._busy.difference_update(row.message.task_id for row in batch)
            self._in_flight.subtract(row.shard for row in batch)
            self._in_flight += Tally()
            if self._bell is not None:
                self._bell.shake()

    async def _note(self, batch: list[Row], receipts: Sequence[Receipt]) -> None:
        """Record what the bus said of each row."""
        judged = list(zip(batch, receipts, strict=True))
        fates = Tally(receipt.fate for receipt in receipts)
        for fate, count in fates.items():
            SENT.labels(fate.value).inc(count)
        if fates[Fate.FAILED] == len(batch):
            self._suspend(receipts[0].error)
        else:
            self._resume()
        now = asyncio.get_running_loop().time()
        for row, receipt in judged:
            if receipt.fate is Fate.SENT:
                self._held.pop(row.message.task_id, None)
            else:
                self._hold(row.message.task_id, now)
        await self._mark([row for row, receipt in judged if receipt.fate is Fate.SENT])
        for row, receipt in judged:
            if receipt.fate is Fate.POISON:
                await self._refuse(row, receipt.error or "refused")

    async def _mark(self, rows: Sequence[Row]) -> None:
        """Mark rows as published; should that fail, a later look marks them without sending."""
        if not rows:
            return
        now = asyncio.get_running_loop().time()
        self._acknowledged.update((row.id, now) for row in rows)
        try:
            await self._owner.mark_published(rows)
        except errors.DatabaseDown:
            raise
        except errors.Unavailable as error:
            logger.warning("not marked yet", kind=type(error).__name__, code=error.code)
        else:
            for row in rows:
                self._acknowledged.pop(row.id, None)

    async def _refuse(self, row: Row, error: str) -> None:
        """Count a refusal; should that fail, the next refusal counts."""
        try:
            parked = await self._owner.mark_unsent(row, error)
        except errors.DatabaseDown:
            raise
        except errors.Unavailable as unavailable:
            logger.warning("refusal not counted", kind=type(unavailable).__name__)
            return
        if parked:
            PARKED.inc()
            logger.error("message parked", outbox_id=row.id, error=error)

    def _hold(self, task: UUID, now: float) -> None:
        until, backoff = self._held.get(task, (0.0, Backoff(0.1, 5.0)))
        if until <= now:
            self._held[task] = (now + backoff.next(), backoff)

    def _suspend(self, error: str | None) -> None:
        wait = self._outage.next()
        if self._outage.tries == 1:
            logger.warning("bus takes nothing", error=error)
        BUS_UP.set(0)
        self._resume_at = asyncio.get_running_loop().time() + wait

    def _resume(self) -> None:
        if self._outage.tries:
            logger.info("bus takes messages again")
        BUS_UP.set(1)
        self._outage.reset()
        self._resume_at = 0.0

    def _lose(self) -> None:
        self._lost = True
        self._changed.set()

    async def _settle(self) -> None:
        """Wait until nothing is in flight; what takes too long is abandoned, unmarked."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=SETTLE_WITHIN)
        for sending in list(self._sending):
            sending.cancel()
        if self._sending:
            await asyncio.gather(*self._sending, return_exceptions=True)

    async def _beat(self, stopping: asyncio.Event) -> None:
        """Send a beat each second while something is owned."""
        while not await pause(BEAT_INTERVAL, stopping):
            shards = self._owner.shards
            if not shards:
                continue
            body = {"kind": BEAT, "relay": self._name, "sent_at": time.time(), "shards": shards}
            try:
                (receipt,) = await self._bus.publish([Message(BEAT_KEY, BEAT, body)])
            except Exception:
                logger.exception("beat failed")
                continue
            BEATS.labels(receipt.fate.value).inc()
            if receipt.fate is Fate.SENT and self._outage.tries:
                self._resume()
                if self._bell is not None:
                    self._bell.shake()


def _batches(rows: Sequence[Row], limit: int, count: int) -> list[list[Row]]:
    """
    Split rows into at most `count` batches of at most `limit`, every task whole in one batch.

    What does not fit is left for the next look.
    """
    batches: list[list[Row]] = [[] for _ in range(count)]
    home: dict[UUID, list[Row]] = {}
    for row in rows:
        task = row.message.task_id
        batch = home.get(task)
        if batch is None:
            batch = home[task] = min(batches, key=len)
        if len(batch) < limit:
            batch.append(row)
    return [batch for batch in batches if batch]
