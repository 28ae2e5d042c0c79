"""The dispatcher publishes each event once, in order, and never waits for Redis."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from redis.asyncio import Redis

from edge.gateway.frames import decode, encode
from relay import dispatch, pgmq
from relay.broadcast import Everywhere, Publisher, control_channel
from relay.bus import BEAT, BEAT_KEY, Message
from relay.consumer import Outcome
from tests.py.conftest import Connect
from tests.py.support.clusters import Run
from tests.py.support.waiting import eventually_async

DATABASE = "11111111-2222-3333-4444-555555555555"


def event(event_id: int, task: UUID | None = None, version: int = 1) -> Message:
    task = task or uuid4()
    body = {
        "event_id": event_id,
        "prev_event_id": event_id - 1,
        "event_type": "task.status.changed",
        "aggregate_id": str(task),
        "aggregate_version": version,
        "project_id": str(UUID(int=7)),
        "status": "running",
        "public_payload": {"status": "running", "stage": "running", "progress": None},
    }
    return Message(task, "running", body)


class Ear:
    """Listens to both channels of a database, as a gateway does."""

    def __init__(self, url: str, database_id: str = DATABASE) -> None:
        self._redis: Redis = Redis.from_url(url)
        self._pubsub = self._redis.pubsub()
        self._events = f"aivedio:{database_id}:events".encode()
        self.frames: list[bytes] = []
        self.beats: list[dict[str, Any]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Ear]:
        await self._pubsub.subscribe(self._events, self._events.replace(b":events", b":control"))
        for _ in range(2):
            assert await self._pubsub.get_message(timeout=5.0)
        task = asyncio.create_task(self._listen())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._pubsub.aclose()  # type: ignore[no-untyped-call]
            await self._redis.aclose()

    def ids(self) -> list[int]:
        return [decode(frame).event_id for frame in self.frames]

    async def _listen(self) -> None:
        while True:
            got = await self._pubsub.get_message(ignore_subscribe_messages=True, timeout=1.0)
            if got is None:
                continue
            if got["channel"] == self._events:
                self.frames.append(got["data"])
            else:
                self.beats.append(orjson.loads(got["data"]))


@pytest.fixture
async def ear(valkey: str) -> AsyncIterator[Ear]:
    async with Ear(valkey).listening() as ear:
        yield ear


@pytest.fixture
async def dispatcher(valkey: str) -> AsyncIterator[dispatch.Dispatcher]:
    publisher = Publisher(valkey)
    yield dispatch.Dispatcher(publisher, Everywhere(DATABASE), control_channel(DATABASE))
    await publisher.close()


async def test_frames_are_published_in_order(dispatcher: dispatch.Dispatcher, ear: Ear) -> None:
    messages = [event(number) for number in range(1, 701)]
    results = await dispatcher.dispatch(messages)
    assert {outcome for outcome, _ in results} == {Outcome.DONE}
    await eventually_async(lambda: len(ear.frames) == 700)
    assert ear.frames == [encode(message.body) for message in messages]


async def test_a_repeat_is_dropped(dispatcher: dispatch.Dispatcher, ear: Ear) -> None:
    await dispatcher.dispatch([event(1), event(2), event(1)])
    await dispatcher.dispatch([event(2), event(3)])
    await eventually_async(lambda: 3 in ear.ids())
    assert ear.ids() == [1, 2, 3]


async def test_a_body_that_is_no_event_is_a_dead_letter(
    dispatcher: dispatch.Dispatcher, ear: Ear
) -> None:
    strange = Message(uuid4(), "running", {"event_id": "one"})
    results = await dispatcher.dispatch([event(1), strange, event(2)])
    assert [outcome for outcome, _ in results] == [Outcome.DONE, Outcome.HOPELESS, Outcome.DONE]
    await eventually_async(lambda: ear.ids() == [1, 2])


async def test_only_a_fresh_beat_is_forwarded(dispatcher: dispatch.Dispatcher, ear: Ear) -> None:
    now = time.time()

    def beat(sent_at: object) -> Message:
        return Message(BEAT_KEY, BEAT, {"kind": BEAT, "sent_at": sent_at})

    for messages in ([beat(now - 60)], [beat("now")], [beat(now - 60), event(1), beat(now)]):
        results = await dispatcher.dispatch(messages)
        assert {outcome for outcome, _ in results} == {Outcome.DONE}
    await eventually_async(lambda: ear.beats)
    await eventually_async(lambda: ear.ids() == [1])
    assert [one["sent_at"] for one in ear.beats] == [now]


async def test_redis_down_is_counted_and_acknowledged_and_heals(
    run: Run, free_port: Callable[[], int]
) -> None:
    # R1
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    publisher = Publisher(url)
    dispatcher = dispatch.Dispatcher(publisher, Everywhere(DATABASE), control_channel(DATABASE))
    number = 0

    async def dispatched() -> int:
        nonlocal number
        number += 1
        started = time.monotonic()
        results = await dispatcher.dispatch([event(number)])
        assert results[0][0] is Outcome.DONE
        assert time.monotonic() - started < 3.0
        return number

    for _ in range(5):
        await dispatched()
    for name in ("first", "second"):
        _, keeper = run.start_valkey(f"valkey-{name}-{uuid4().hex[:6]}", port)
        async with Ear(url).listening() as ear:

            async def heard(ear: Ear = ear) -> bool:
                return await dispatched() in ear.ids() or len(ear.ids()) > 3

            check: Callable[[], Any] = heard
            await eventually_async(check, 15)
        run.stop(keeper)
        await dispatched()
    await publisher.close()


async def test_a_hung_redis_costs_one_timeout_per_moment_not_per_batch(valkey: str) -> None:
    # R2
    publisher = Publisher(valkey)
    dispatcher = dispatch.Dispatcher(publisher, Everywhere(DATABASE), control_channel(DATABASE))
    await dispatcher.dispatch([event(1)])
    async with Redis.from_url(valkey) as redis:
        pid = (await redis.info("server"))["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        for number in range(2, 402):
            await dispatcher.dispatch([event(number)])
            await asyncio.sleep(0.002)
        assert time.monotonic() - started < 8.0
    finally:
        os.kill(pid, signal.SIGCONT)
    async with Ear(valkey).listening() as ear:
        numbers = iter(range(500, 10_000))

        async def heard() -> bool:
            await dispatcher.dispatch([event(next(numbers))])
            return bool(ear.frames)

        check: Callable[[], Any] = heard
        await eventually_async(check, 15)
    await publisher.close()


async def test_from_the_bus_to_redis_with_beats(
    database: str, valkey: str, connect: Connect
) -> None:
    row = connect().execute("select database_id from aivedio.server_identity").fetchone()
    assert row is not None
    stopping = asyncio.Event()
    states: list[bool] = []
    async with (
        Ear(valkey, str(row[0])).listening() as ear,
        pgmq.connect(database, role=pgmq.PUBLISHER) as bus,
    ):
        running = asyncio.create_task(
            dispatch.run(
                database_url=database, redis_url=valkey, stopping=stopping, ready=states.append
            )
        )
        await eventually_async(lambda: True in states)
        sent = [event(number) for number in range(1, 51)]
        await bus.publish([sent[0], Message(UUID(int=0), "running", {}), *sent[1:]])
        await bus.publish([Message(BEAT_KEY, BEAT, {"kind": BEAT, "sent_at": time.time()})])
        await eventually_async(lambda: ear.ids() == list(range(1, 51)))
        await eventually_async(lambda: ear.beats)
        stopping.set()
        async with asyncio.timeout(5):
            await running
    left = connect().execute("select count(*) from pgmq.q_aivedio_dispatcher").fetchone()
    dead = connect().execute("select headers ->> 'error' from pgmq.a_aivedio_dispatcher").fetchall()
    assert left == (0,)
    assert dead == [("BadFrame: the body is not an event's",)]
