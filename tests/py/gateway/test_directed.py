"""Directed dispatch: each gateway gets the events of the projects it follows, and no others."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from edge.gateway import registry
from edge.gateway.frames import decode, encode
from edge.gateway.registry import Registry
from relay import dispatch, outbox
from relay.broadcast import Directed, Publisher
from tests.py.gateway.conftest import Gateway, Person, StartGateway
from tests.py.support.clusters import Run
from tests.py.support.waiting import eventually_async

DATABASE = "11111111-2222-3333-4444-555555555555"


class Spy:
    """Hears every message of a database's channels, whoever it is for."""

    def __init__(self, url: str, database_id: object) -> None:
        self._url = url
        self._prefix = f"aivedio:{database_id}:"
        self.heard: list[tuple[str, bytes]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Spy]:
        async with Redis.from_url(self._url) as client, client.pubsub() as ear:
            await ear.psubscribe(self._prefix + "*")
            assert await ear.get_message(timeout=5.0)
            task = asyncio.create_task(self._listen(ear))
            yield self
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen(self, ear: object) -> None:
        while True:
            got = await ear.get_message(ignore_subscribe_messages=True, timeout=1.0)  # type: ignore[attr-defined]
            if got is not None:
                channel = got["channel"].decode().removeprefix(self._prefix)
                if channel != "control":
                    self.heard.append((channel, got["data"]))

    def channels(self, project: uuid.UUID) -> Counter[str]:
        return Counter(channel for channel, frame in self.heard if frame[:16] == project.bytes)


def frame(project: uuid.UUID, event_id: int) -> bytes:
    return encode(
        {
            "event_id": event_id,
            "prev_event_id": event_id - 1,
            "event_type": "task.status.changed",
            "aggregate_id": str(uuid.uuid4()),
            "aggregate_version": 1,
            "project_id": str(project),
            "public_payload": {"status": "running", "stage": "running", "progress": None},
        }
    )


@pytest.fixture
async def path(database: str, valkey: str) -> AsyncIterator[None]:
    """Run a relay and a directed dispatcher on the test's database and Valkey."""
    stopping = asyncio.Event()
    ready: set[str] = set()

    def report(name: str) -> Callable[[bool], None]:
        return lambda now: ready.add(name) if now else ready.discard(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            outbox.run(database_url=database, stopping=stopping, ready=report("relay"))
        )
        tasks.create_task(
            dispatch.run(
                database_url=database,
                redis_url=valkey,
                directed=True,
                stopping=stopping,
                ready=report("dispatch"),
            )
        )
        await eventually_async(lambda: len(ready) == 2, 20)
        yield
        stopping.set()


async def test_only_the_gateways_that_follow_a_project_get_its_events(
    start_gateway: StartGateway, valkey: str, path: None
) -> None:
    first, second = [await start_gateway(directed=True) for _ in range(2)]
    one, other, nobodys = [Person(projects=(uuid.uuid4(),)) for _ in range(3)]
    async with Spy(valkey, first.database_id).listening() as spy:
        async with (
            first.follow(one.projects[0], one.bearer()) as at_first,
            second.follow(other.projects[0], other.bearer()) as at_second,
            second.follow(one.projects[0], one.bearer()) as also_at_second,
        ):
            for reader in (at_first, at_second, also_at_second):
                await reader.next()
            for person in (one, other, nobodys) * 3:
                await first.create_task(person)
            await at_first.until(await first.head(one.projects[0]))
            await also_at_second.until(await first.head(one.projects[0]))
            await at_second.until(await first.head(other.projects[0]))
            await eventually_async(lambda: sum(spy.channels(other.projects[0]).values()) == 3)
        assert sorted(spy.channels(one.projects[0]).values()) == [3, 3]
        assert sorted(spy.channels(other.projects[0]).values()) == [3]
        assert not spy.channels(nobodys.projects[0])
        (shared,) = spy.channels(other.projects[0])
        assert shared in spy.channels(one.projects[0])


async def test_what_commits_after_ready_comes_by_the_channel(
    start_gateway: StartGateway, valkey: str, path: None
) -> None:
    gateway = await start_gateway(directed=True)
    async with Spy(valkey, gateway.database_id).listening() as spy:
        for _ in range(5):
            person = Person(projects=(uuid.uuid4(),))
            async with gateway.follow(person.projects[0], person.bearer()) as reader:
                await reader.next()
                await gateway.create_task(person)
                await reader.until(await gateway.head(person.projects[0]))
                check: Callable[[], int] = spy.channels(person.projects[0]).total
                await eventually_async(check)


async def test_a_restarted_redis_is_told_again(
    start_gateway: StartGateway, run: Run, free_port: Callable[[], int], person: Person
) -> None:
    port = free_port()
    url, keeper = run.start_valkey(f"valkey-{uuid.uuid4().hex[:8]}", port)
    gateway = await start_gateway(directed=True, redis_url=url)
    project = person.projects[0]
    async with gateway.follow(project, person.bearer()) as reader:
        await reader.next()
        run.stop(keeper)
        await gateway.create_task(person)
        await reader.until(await gateway.head(project))
        _, keeper = run.start_valkey(f"valkey-{uuid.uuid4().hex[:8]}", port)
        assert await _reached(gateway, url, project) == 1
    run.stop(keeper)


async def test_a_node_that_is_gone_is_forgotten(
    valkey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "LASTS_S", 2)
    project = uuid.uuid4()
    gone, there = Registry(valkey, DATABASE), Registry(valkey, DATABASE)
    stopping = asyncio.Event()
    monkeypatch.setattr(registry, "REFRESH_S", 0.5)
    running = asyncio.create_task(there.run(lambda: [project], stopping))
    await gone.ensure(project)

    async with Spy(valkey, DATABASE).listening() as spy:
        publisher = Publisher(valkey)

        async def nodes() -> set[str]:
            spy.heard.clear()
            assert await publisher.publish(Directed(DATABASE), [frame(project, 1)])
            assert await publisher.publish(Directed(DATABASE), [frame(project, 2)])
            await eventually_async(
                lambda: any(decode(one).event_id == 2 for _, one in spy.heard), 5
            )
            return {channel for channel, _ in spy.heard}

        names = {one.channel.partition(DATABASE + ":")[2] for one in (gone, there)}
        await eventually_async(lambda: _is(nodes, names))
        await eventually_async(lambda: _is(nodes, {there.channel.partition(DATABASE + ":")[2]}), 10)
        await publisher.close()
    stopping.set()
    await running
    await gone.close()
    await there.close()


async def _is(nodes: Callable[[], object], expected: set[str]) -> bool:
    return bool(await nodes() == expected)  # type: ignore[misc]


async def _reached(gateway: Gateway, url: str, project: uuid.UUID) -> int:
    """Return how many nodes an event of a project goes to, once there is one."""
    async with Spy(url, gateway.database_id).listening() as spy:
        publisher = Publisher(url)

        async def some() -> int:
            await publisher.publish(Directed(str(gateway.database_id)), [frame(project, 1)])
            return len(spy.channels(project))

        reached = await eventually_async(some, 15)
        await publisher.close()
        return int(reached)
