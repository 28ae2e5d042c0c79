"""Redis and PostgreSQL go away and come back; streams stay complete, and late by 3 s at most."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
import pytest
import redis.asyncio
from prometheus_client import REGISTRY
from psycopg.conninfo import make_conninfo

from edge.gateway import lookout
from edge.gateway.hub import Hub
from edge.gateway.store import Store
from tests.py.gateway.conftest import Gateway, Person, StartGateway
from tests.py.gateway.proxy import Proxy, proxied
from tests.py.support.clusters import Cluster, Run
from tests.py.support.waiting import eventually_async

LATE = 3.0


@asynccontextmanager
async def redis_behind_a_proxy(valkey: str, port: int) -> AsyncIterator[tuple[str, Proxy]]:
    target = int(valkey.split(":")[2].split("/")[0])
    async with proxied(port, target) as proxy:
        yield f"redis://127.0.0.1:{port}/0", proxy


async def arrives(gateway: Gateway, person: Person, reader: object) -> float:
    """Create a task and return how long its event took to the reader."""
    started = time.monotonic()
    task = await gateway.create_task(person)
    await reader.until(task["event_id"], within=LATE)  # type: ignore[attr-defined]
    return time.monotonic() - started


def metric(name: str) -> float:
    value = REGISTRY.get_sample_value(name)
    assert value is not None
    return value


async def test_a_published_event_needs_no_look(gateway: Gateway, person: Person) -> None:
    (project,) = person.projects
    first = await gateway.create_task(person)
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.until(first["event_id"])
        quickest = LATE
        for _ in range(5):
            task = await gateway.create_task(person)
            started = time.monotonic()
            await gateway.publish(task["event_id"])
            await reader.until(task["event_id"])
            quickest = min(quickest, time.monotonic() - started)
        assert quickest < 0.3


async def test_dropped_repeated_and_reordered_messages_change_nothing(
    gateway: Gateway, person: Person
) -> None:
    """Redis lies: the stream is complete and in order all the same."""
    (project,) = person.projects
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.next()
        made = [(await gateway.create_task(person))["event_id"] for _ in range(8)]
        await gateway.publish(made[3], made[1], made[1], made[5], made[7], made[0], made[7])
        await reader.until(made[-1], within=LATE)
        assert reader.ids == made


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_redis_says_every_reader_has_the_whole_stream(
    gateway: Gateway, person: Person, seed: int
) -> None:
    """Lost, repeated and reordered messages under readers that come, go and return."""
    (project,) = person.projects
    chance = random.Random(seed)
    made: list[int] = []
    cursors = [0, 0, 0]
    for _ in range(6):
        async with AsyncExitStack() as opened:
            readers = [
                await opened.enter_async_context(
                    gateway.follow(project, person.bearer(), cursor=cursor)
                )
                for cursor in cursors
            ]
            new = [(await gateway.create_task(person))["event_id"] for _ in range(4)]
            made += new
            lies = chance.choices([*new, *made[-12:]], k=chance.randint(0, 8))
            await gateway.publish(*lies)
            # Some leave at once, somewhere in the middle, others after they have everything.
            for number, reader in enumerate(readers):
                if chance.random() < 0.6:
                    await reader.until(made[-1], within=LATE)
                elif chance.random() < 0.5:
                    await reader.next()
                assert reader.ids == [
                    one for one in made if cursors[number] < one <= (reader.cursor or 0)
                ]
                cursors[number] = cursors[number] if reader.cursor is None else reader.cursor
    async with gateway.follow(project, person.bearer(), cursor=cursors[0]) as last:
        await last.until(made[-1], within=LATE)


async def test_an_event_that_commits_late_is_found_without_its_message(
    start_gateway: StartGateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C1: its id lies below what was known long before it became visible."""
    monkeypatch.setattr(lookout, "COMPARE_S", 3.0)
    gateway = await start_gateway()
    (project,) = person.projects
    other = Person(projects=(uuid.uuid4(),))
    await gateway.create_task(person)
    async with gateway.follow(project, person.bearer()) as reader:
        await reader.next()
        async with await psycopg.AsyncConnection.connect(gateway.database) as slow:
            cursor = await slow.execute(
                "select event_id from aivedio.create_task(%s, %s, %s, 'replicate', 'm', '{}')",
                [person.tenant, project, person.user],
            )
            row = await cursor.fetchone()
            assert row is not None
            async with gateway.follow(other.projects[0], other.bearer()) as bystander:
                await bystander.next()
                opened = time.monotonic()
                # Until the window lies above the open transaction's id.
                while time.monotonic() - opened < lookout.WINDOW_S + 2.0:
                    await bystander.until((await gateway.create_task(other))["event_id"])
            await slow.commit()
        await reader.until(row[0], within=6.0)


async def test_a_forged_message_is_not_delivered_for_long(gateway: Gateway, person: Person) -> None:
    """Bytes that are no frame are refused; a frame that is no fact forks, resets and heals."""
    (project,) = person.projects
    channel = f"aivedio:{gateway.database_id}:events"
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.next()
        async with redis.asyncio.Redis.from_url(gateway.redis_url) as client:
            for junk in (b"", b"x", project.bytes, project.bytes + b"y" * 200, b"z" * 100_000):
                await client.publish(channel, junk)
            await client.publish(f"aivedio:{gateway.database_id}:control", b"\xff not json")
        assert await arrives(gateway, person, reader) < LATE


@pytest.mark.parametrize("broken", ["read", "answered"])
async def test_a_mistake_of_ours_does_not_leave_a_stream_waiting(
    gateway: Gateway, person: Person, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Of the question, or of what a hub makes of the answer: it is asked again, and heals."""
    (project,) = person.projects
    owner, name = {"read": (Store, "read"), "answered": (Hub, "answered")}[broken]
    right = getattr(owner, name)
    failures = iter([ZeroDivisionError("a mistake")])

    def once(*arguments: Any) -> Any:
        for failure in failures:
            raise failure
        return right(*arguments)

    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.next()
        monkeypatch.setattr(owner, name, once)
        task = await gateway.create_task(person)
        await reader.until(task["event_id"], within=8.0)
        assert next(failures, None) is None
        # The chain that the mistake lost begins anew; whoever follows takes a snapshot then.
        assert reader.ids == ([task["event_id"]] if broken == "read" else [])
        await arrives(gateway, person, reader)


async def test_redis_killed_and_restarted_mid_stream(
    start_gateway: StartGateway, person: Person, run: Run, free_port: Callable[[], int]
) -> None:
    """R1, R5, G16: looks at PostgreSQL carry the stream, then Redis does again, by itself."""
    port = free_port()
    url, keeper = await asyncio.to_thread(run.start_valkey, f"mortal-{port}", port)
    gateway = await start_gateway(redis_url=url)
    (project,) = person.projects
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.next()
        subscriptions = metric("aivedio_gateway_subscriptions_total")
        await asyncio.to_thread(run.stop, keeper)
        for _ in range(3):
            assert await arrives(gateway, person, reader) < LATE
        async with gateway.follow(project, person.bearer(), cursor=0) as newcomer:
            await newcomer.until(reader.ids[-1])
        assert metric("aivedio_gateway_subscribed") == 0
        _, keeper = await asyncio.to_thread(run.start_valkey, f"mortal-{port}-again", port)
        try:
            await eventually_async(
                lambda: metric("aivedio_gateway_subscriptions_total") > subscriptions
            )
            task = await gateway.create_task(person)
            await gateway.publish(task["event_id"])
            await reader.until(task["event_id"], within=LATE)
        finally:
            await asyncio.to_thread(run.stop, keeper)


async def test_redis_that_answers_nothing_is_left_and_found_again(
    start_gateway: StartGateway, person: Person, valkey: str, free_port: Callable[[], int]
) -> None:
    """R2: a network cut without a FIN is noticed; nothing is late beyond a look."""
    async with redis_behind_a_proxy(valkey, free_port()) as (url, proxy):
        gateway = await start_gateway(redis_url=url)
        (project,) = person.projects
        async with gateway.follow(project, person.bearer(), cursor=0) as reader:
            await reader.next()
            proxy.freeze()
            assert await arrives(gateway, person, reader) < LATE
            await eventually_async(lambda: metric("aivedio_gateway_subscribed") == 0, 8.0)
            assert await arrives(gateway, person, reader) < LATE
            proxy.freeze()
            await proxy.mend()
            await eventually_async(lambda: metric("aivedio_gateway_subscribed") == 1, 8.0)
            assert await arrives(gateway, person, reader) < LATE


async def test_a_gateway_starts_without_redis(
    start_gateway: StartGateway, person: Person, free_port: Callable[[], int]
) -> None:
    gateway = await start_gateway(redis_url=f"redis://127.0.0.1:{free_port()}/0")
    async with gateway.follow(person.projects[0], person.bearer(), cursor=0) as reader:
        await reader.next()
        assert await arrives(gateway, person, reader) < LATE


async def test_beats_decide_whether_events_are_late(gateway: Gateway) -> None:
    """Silence cannot be told from idleness, so the bus beats."""
    await eventually_async(lambda: metric("aivedio_gateway_degraded") == 1)
    control = f"aivedio:{gateway.database_id}:control"
    async with redis.asyncio.Redis.from_url(gateway.redis_url) as client:

        async def beaten() -> bool:
            await client.publish(control, b'{"beat":1}')
            return metric("aivedio_gateway_degraded") == 0

        await eventually_async(beaten)
    await eventually_async(lambda: metric("aivedio_gateway_degraded") == 1)


async def test_an_idle_feed_does_not_spin(gateway: Gateway) -> None:
    """R4: a subscriber that waits costs next to nothing."""
    started, used = time.monotonic(), time.process_time()
    await asyncio.sleep(2.0)  # a rate over a span of time
    share = (time.process_time() - used) / (time.monotonic() - started)
    assert share < 0.1


@asynccontextmanager
async def postgres_behind_a_proxy(
    database: str, cluster: Cluster, port: int
) -> AsyncIterator[tuple[str, Proxy]]:
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    async with proxied(port, cluster.port) as proxy:
        yield make_conninfo(host="127.0.0.1", port=port, user="postgres", dbname=name), proxy


@pytest.mark.parametrize("how", ["cut", "freeze"])
async def test_postgres_goes_away_and_comes_back(
    start_gateway: StartGateway,
    person: Person,
    database: str,
    cluster: Cluster,
    free_port: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """Streams stay open, newcomers are told to come back, and everything heals."""
    monkeypatch.setattr(lookout, "AWAY_S", 3.0)
    async with postgres_behind_a_proxy(database, cluster, free_port()) as (conninfo, proxy):
        gateway = await start_gateway(database_url=conninfo)
        gateway.database = database
        (project,) = person.projects
        async with gateway.follow(project, person.bearer(), cursor=0) as reader:
            await reader.next()
            await arrives(gateway, person, reader)
            if how == "cut":
                await proxy.cut()
            else:
                proxy.freeze()
            refused = await gateway.client.get(
                f"/projects/{project}/events", headers=person.bearer()
            )
            assert refused.status_code == 503, refused.text
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["code"] == "unavailable"
            # Whoever is in is told that nobody knows what they miss.
            assert await reader.word() == "away"
            # What Redis brings goes on.
            task = await gateway.create_task(person)
            await gateway.publish(task["event_id"])
            await reader.until(task["event_id"], within=1.0)
            # What Redis loses is found once PostgreSQL is back.
            lost = await gateway.create_task(person)
            await proxy.mend()
            assert await reader.word() == "back"
            # Said only once nothing was missing any more.
            assert reader.cursor == lost["event_id"]
            assert await served(gateway, person) == 200


async def test_an_idle_gateway_asks_whether_its_database_is_there(gateway: Gateway) -> None:
    """Also one that nothing has happened in yet; else it would take the silence for an outage."""

    def answers() -> float:
        labels = {"kind": "moved", "result": "ok"}
        return REGISTRY.get_sample_value("aivedio_gateway_looks_total", labels) or 0.0

    before = answers()
    await eventually_async(lambda: answers() >= before + 3)


async def test_postgres_ends_its_sessions_and_refuses_new_ones_for_a_while(
    gateway: Gateway, person: Person, cluster: Cluster
) -> None:
    """The server itself, as when it restarts."""
    (project,) = person.projects
    name = psycopg.conninfo.conninfo_to_dict(gateway.database)["dbname"]
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.next()
        with psycopg.connect(cluster.conninfo(), autocommit=True) as operator:
            operator.execute(f"alter database {name} allow_connections false")
            operator.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
            )
            refused = await gateway.client.get(
                f"/projects/{project}/events", headers=person.bearer()
            )
            operator.execute(f"alter database {name} allow_connections true")
        assert refused.status_code == 503
        lost = await gateway.create_task(person)
        await reader.until(lost["event_id"], within=10.0)
        assert await served(gateway, person) == 200


async def served(gateway: Gateway, person: Person) -> int:
    async def answer() -> int:
        response = await gateway.client.get(
            f"/projects/{person.projects[0]}/tasks", headers=person.bearer()
        )
        return response.status_code if response.status_code == 200 else 0

    return await eventually_async(answer)


async def test_a_gateway_waits_for_its_database(
    start_gateway: StartGateway,
    person: Person,
    database: str,
    cluster: Cluster,
    free_port: Callable[[], int],
) -> None:
    async with postgres_behind_a_proxy(database, cluster, free_port()) as (conninfo, proxy):
        await proxy.cut()
        starting = asyncio.create_task(start_gateway(database_url=conninfo))
        done, _ = await asyncio.wait({starting}, timeout=2.0)
        assert not done
        await proxy.mend()
        gateway = await asyncio.wait_for(starting, 15.0)
        assert await served(gateway, person) == 200


async def test_two_gateways_show_the_same(start_gateway: StartGateway, person: Person) -> None:
    """A reader that changes gateway goes on, also when the new one is behind."""
    first, second = await start_gateway(), await start_gateway()
    (project,) = person.projects
    async with first.follow(project, person.bearer(), cursor=0) as reader:
        task = await first.create_task(person)
        await first.publish(task["event_id"])
        await reader.until(task["event_id"])
    async with second.follow(project, person.bearer(), cursor=reader.cursor) as reader:
        assert (await reader.next()).event == "ready"
        await arrives(second, person, reader)
