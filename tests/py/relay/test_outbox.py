"""The relay sends what was committed: at least once, in order, whatever dies on the way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from uuid import UUID

from relay import pgmq
from relay.bus import BEAT, Bus, Delivery, Fate, Message, Receipt, Subscription
from relay.outbox import Relay
from tests.py.conftest import Connect, Connection
from tests.py.relay.conftest import Outage, Writer
from tests.py.support.waiting import eventually_async


class Scripted:
    """A bus in memory that takes, refuses or loses messages as the test says."""

    batch_limit = 100
    parallel = 2

    def __init__(self) -> None:
        self.taken: list[Message] = []
        self.calls: list[list[Message]] = []
        self.down = False
        self.refused: set[UUID] = set()
        self.stuck: dict[UUID, asyncio.Event] = {}
        self.in_flight: list[UUID] = []
        self.overlaps = 0

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        if any(message.tag == BEAT for message in messages):
            return [Receipt(Fate.FAILED if self.down else Fate.SENT)] * len(messages)
        self.calls.append(list(messages))
        tasks = {message.task_id for message in messages}
        self.overlaps += len(tasks.intersection(self.in_flight))
        self.in_flight += tasks
        await asyncio.sleep(0.001)
        for task in tasks & self.stuck.keys():
            await self.stuck[task].wait()
        for task in tasks:
            self.in_flight.remove(task)
        receipts = []
        blocked: set[UUID] = set()
        for message in messages:
            if self.down or message.task_id in blocked:
                receipts.append(Receipt(Fate.FAILED, "down"))
            elif message.task_id in self.refused:
                blocked.add(message.task_id)
                receipts.append(Receipt(Fate.POISON, "too large"))
            else:
                self.taken.append(message)
                receipts.append(Receipt(Fate.SENT))
        return receipts

    def subscribe(
        self, group: str, *, visibility: float = 30.0
    ) -> AbstractAsyncContextManager[Subscription]:
        raise NotImplementedError

    def versions(self) -> dict[UUID, list[int]]:
        return _versions(self.taken)


def _versions(messages: Sequence[Message]) -> dict[UUID, list[int]]:
    """Return the order in which each task's versions came for the first time."""
    seen: dict[UUID, list[int]] = {}
    for message in messages:
        versions = seen.setdefault(message.task_id, [])
        version = message.body["aggregate_version"]
        if version not in versions:
            versions.append(version)
    return seen


def _has_taken(bus: Scripted, count: int) -> bool:
    return len(bus.taken) == count


@asynccontextmanager
async def relaying(database: str, bus: Bus) -> AsyncIterator[Relay]:
    stopping = asyncio.Event()
    relay = Relay(database, bus)
    running = asyncio.create_task(relay.run(stopping, lambda _: None))
    try:
        yield relay
    finally:
        stopping.set()
        async with asyncio.timeout(30):
            await running


async def test_what_is_committed_is_sent_in_order_and_marked(database: str, writer: Writer) -> None:
    bus = Scripted()
    tasks = writer.tasks(30)
    for _ in range(5):
        for task in random.sample(tasks, len(tasks)):
            writer.change(task)
    async with relaying(database, bus):
        await eventually_async(lambda: writer.pending() == 0)
        for task in tasks:
            writer.change(task)
        await eventually_async(lambda: writer.pending() == 0)
    assert bus.versions() == writer.written
    assert bus.overlaps == 0


async def test_a_sleeping_relay_wakes_at_the_bell(database: str, writer: Writer) -> None:
    bus = Scripted()
    (task,) = writer.tasks(1)
    loop = asyncio.get_running_loop()
    async with relaying(database, bus):
        delays = []
        for count in range(1, 8):
            await asyncio.sleep(0.15)  # let it fall asleep: that is the case tested
            at = loop.time()
            writer.change(task)
            await eventually_async(partial(_has_taken, bus, count))
            delays.append(loop.time() - at)
    assert sorted(delays)[3] < 0.3, delays


async def test_a_commit_behind_later_ids_is_not_lost(database: str, writer: Writer) -> None:
    # C1, O26: ids are drawn before commit.
    bus = Scripted()
    late, *others = writer.tasks(12)
    async with relaying(database, bus):
        for task in others:
            writer.change(task)
        await eventually_async(lambda: len(bus.taken) == 11)
        with writer.begin(late) as slow:
            for _ in range(3):
                for task in others:
                    writer.change(task)
                await asyncio.sleep(0.3)  # marks move at most five times a second
            await eventually_async(lambda: len(bus.taken) == 44)
            slow.commit()
        await eventually_async(lambda: len(bus.taken) == 45)
        assert bus.taken[-1].task_id == late
    assert writer.pending() == 0


async def test_poison_is_parked_and_others_flow(
    database: str, writer: Writer, connect: Connect
) -> None:
    # O7: later rows of the same task wait, then flow with a flag.
    connect(autocommit=True).execute(
        "update aivedio.settings set value = '2' where name = 'poison_retries'"
    )
    bus = Scripted()
    sick, *well = writer.tasks(5)
    bus.refused.add(sick)
    async with relaying(database, bus):
        for task in (sick, *well, *well, sick):
            writer.change(task)
        await eventually_async(lambda: len(bus.taken) == 8)
        await eventually_async(lambda: writer.parked() == [(sick, 1)])
        bus.refused.clear()
        await eventually_async(lambda: writer.pending() == 0)
    assert bus.versions()[sick] == [2]
    assert [one.body.get("after_parked") for one in bus.taken if one.task_id == sick] == [True]
    alarms = connect().execute("select kind from aivedio.alarms").fetchall()
    assert alarms == [("outbox_parked",)]


async def test_a_stuck_send_holds_its_own_tasks_only(database: str, writer: Writer) -> None:
    bus = Scripted()
    stuck, *well = writer.tasks(8)
    bus.stuck[stuck] = asyncio.Event()
    async with relaying(database, bus):
        writer.change(stuck)
        await eventually_async(lambda: stuck in bus.in_flight)
        writer.change(stuck)
        for task in well:
            writer.change(task)
        await eventually_async(lambda: len(bus.taken) == 7)
        assert stuck not in bus.versions()
        bus.stuck.pop(stuck).set()
        await eventually_async(lambda: writer.pending() == 0)
    assert bus.versions() == writer.written
    assert bus.overlaps == 0


async def test_a_row_that_cannot_be_marked_is_not_sent_again(
    database: str, writer: Writer, connect: Connect
) -> None:
    bus = Scripted()
    tasks = writer.tasks(4)
    for task in tasks:
        writer.change(task)
    with connect() as holder, connect(autocommit=True) as watcher:
        holder.execute("select from aivedio.outbox_events for update")
        async with relaying(database, bus):
            # The first two marks ran into their lock_timeout: a third one waits. The moment between
            # two marks is too short to be seen, so waits are told apart by when they began.
            waits: set[object] = set()

            def third_waits() -> bool:
                waits.update(_lock_waits(watcher))
                return len(waits) >= 3

            await eventually_async(third_waits, timeout=30.0)
            holder.rollback()
            await eventually_async(lambda: writer.pending() == 0)
    assert len(bus.taken) == 4


def _lock_waits(session: Connection) -> set[object]:
    """When the statement began that waits for a lock now, if one does."""
    return {
        began
        for (began,) in session.execute(
            "select query_start from pg_stat_activity where datname = current_database()"
            " and application_name = 'aivedio-relay-owner' and wait_event_type = 'Lock'"
        )
    }


async def test_no_lock_and_no_transaction_while_sending(
    database: str, writer: Writer, connect: Connect
) -> None:
    # O5
    bus = Scripted()
    (task,) = writer.tasks(1)
    bus.stuck[task] = asyncio.Event()
    async with relaying(database, bus):
        writer.change(task)
        await eventually_async(lambda: task in bus.in_flight)
        watcher = connect(autocommit=True)
        held = watcher.execute(
            "select locktype, mode from pg_locks join pg_stat_activity using (pid)"
            " where usename is not null and pid <> pg_backend_pid()"
            " and locktype not in ('advisory', 'virtualxid') and state like 'idle%%'"
        ).fetchall()
        assert held == []
        writer.change(task)  # would wait for a lock on the task or its rows
        bus.stuck.pop(task).set()
        await eventually_async(lambda: writer.pending() == 0)


async def test_an_outage_of_the_bus_counts_nothing_and_drains_in_order(
    database: str, writer: Writer, connect: Connect
) -> None:
    bus = Scripted()
    bus.down = True
    tasks = writer.tasks(10)
    async with relaying(database, bus):
        for _ in range(20):
            for task in tasks:
                writer.change(task)
        await eventually_async(lambda: len(bus.calls) >= 6)
        tries = connect().execute("select sum(retry_count) from aivedio.outbox_events").fetchone()
        assert tries == (0,)
        assert writer.pending() == 200
        calls = len(bus.calls)
        bus.down = False
        await eventually_async(lambda: writer.pending() == 0, 15)
    assert calls < 40, "an outage is met with pauses"
    assert bus.versions() == writer.written


async def test_two_relays_share_the_shards_and_no_row_is_sent_by_both(
    database: str, writer: Writer
) -> None:
    # O1, O25
    one, other = Scripted(), Scripted()
    tasks = writer.tasks(40)
    async with relaying(database, one) as first:
        await eventually_async(lambda: len(first.shards) == 8)
        for task in tasks:
            writer.change(task)
        async with relaying(database, other) as second:
            await eventually_async(lambda: (len(first.shards), len(second.shards)) == (4, 4))
            for _ in range(3):
                for task in tasks:
                    writer.change(task)
            await eventually_async(lambda: writer.pending() == 0)
            assert one.taken and other.taken
        await eventually_async(lambda: len(first.shards) == 8)
        for task in tasks:
            writer.change(task)
        await eventually_async(lambda: writer.pending() == 0)
    total = len(one.taken) + len(other.taken)
    assert total == 40 * 5, "each exactly once"


async def test_the_relay_survives_an_outage_of_the_database(
    database: str, writer: Writer, outage: Outage, connect: Connect
) -> None:
    bus = Scripted()
    tasks = writer.tasks(10)
    async with relaying(database, bus):
        for task in tasks:
            writer.change(task)
        await eventually_async(lambda: writer.pending() == 0)
        async with outage():
            await asyncio.sleep(0.5)
        again = Writer(connect)
        again.written = writer.written
        for task in tasks:
            again.change(task)
        await eventually_async(lambda: again.pending() == 0, 20)
    assert bus.versions() == writer.written


async def test_beats_pass_through_the_bus_to_the_dispatcher(database: str) -> None:
    async with (
        pgmq.connect(database, role=pgmq.PUBLISHER) as publisher,
        pgmq.connect(database, role=pgmq.CONSUMER) as consumer,
        consumer.subscribe("dispatcher") as subscription,
        relaying(database, publisher),
    ):
        got: list[Delivery] = []
        async with asyncio.timeout(10):
            while len(got) < 2:
                got += await subscription.receive(10, 1.0)
    assert {one.message.tag for one in got} == {BEAT}
    assert got[0].message.body["shards"] == list(range(8))
