"""The bus on a real RocketMQ keeps the contract of `relay.bus`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from relay import pgmq, rocketmq, rocketmq_subscription
from relay.bus import BusDown, Fate, Message
from relay.buses import Rocketmq
from tests.py.conftest import Connect
from tests.py.relay.contract import (
    GROUP,
    VISIBILITY,
    BusContract,
    Stage,
    eventually_sent,
    message,
    nothing_comes,
    take,
    versions,
)
from tests.py.support.clusters import Cluster
from tests.py.support.rocketmq import Broker
from tests.py.support.waiting import eventually, eventually_async

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


async def test_dead_letters_are_where_operators_look_and_come_back(
    stage: Stage, connect: Connect
) -> None:
    # O8
    admin = connect(autocommit=True)
    sick = message(uuid4(), 1)
    await stage.publisher.publish([sick])
    async with stage.consumer.subscribe(GROUP) as subscription:
        (delivery,) = await take(subscription, 1, ack=False)
        await subscription.bury(delivery, "nobody can read it")
        row = admin.execute("select aivedio.dead_letters(%s)", [GROUP]).fetchone()
        assert row is not None
        assert [letter["error"] for letter in row[0]] == ["nobody can read it"]
        admin.execute(
            "select aivedio.requeue_dead_letters(%s, null, 'ops@example.com', 'it can')", [GROUP]
        )
        (again,) = await take(subscription, 1)
    assert again.message == sick
    assert admin.execute("select count(*) from pgmq.q_aivedio_dispatcher").fetchone() == (0,)


async def test_what_waits_on_the_embedded_bus_is_not_left_behind(
    stage: Stage, database: str
) -> None:
    sent = message(uuid4(), 1)
    async with pgmq.connect(database, role=pgmq.PUBLISHER) as bus:
        await bus.publish([sent])
    async with stage.consumer.subscribe(GROUP) as subscription:
        (got,) = await take(subscription, 1)
    assert got.message == sent


@pytest.mark.parametrize("group", ["dispatcher", "media"])
async def test_a_message_that_nobody_acknowledges_is_not_tried_for_ever(
    stage: Stage, connect: Connect, group: str
) -> None:
    # R14
    admin = connect(autocommit=True)
    admin.execute("update aivedio.consumer_groups set max_tries = 2")
    sent = message(uuid4(), 1, "provider_succeeded")
    await stage.publisher.publish([sent])
    async with stage.consumer.subscribe(group, visibility=VISIBILITY) as subscription:
        for _ in range(2):
            await take(subscription, 1, ack=False)

        async def buried() -> bool:
            assert await nothing_comes(subscription, 0.5)
            row = admin.execute("select aivedio.dead_letters(%s)", [group]).fetchone()
            return bool(row and row[0])

        check: Callable[[], Any] = buried
        await eventually_async(check, 20)


async def test_a_message_that_must_wait_holds_up_no_other_of_media(stage: Stage) -> None:
    sent = [message(uuid4(), 1, "provider_succeeded") for _ in range(60)]
    await stage.publisher.publish(sent)
    async with stage.consumer.subscribe("media") as subscription:
        (first,) = await take(subscription, 1, ack=False)
        await subscription.retry(first, 30.0)
        assert len(await take(subscription, 59)) == 59


async def test_a_long_poll_that_brings_nothing_is_no_error(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R16
    monkeypatch.setattr(rocketmq_subscription, "POLL", 0.5)
    async with stage.consumer.subscribe(GROUP) as subscription:
        for _ in range(4):
            assert await nothing_comes(subscription, 0.8)


def test_the_protocol_is_loaded_without_the_rest_of_its_package(tmp_path: Path) -> None:
    # R17: nothing native of RocketMQ, no log files, nobody's logging configured.
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import logging, sys; before = dict(logging.root.manager.loggerDict)\n"
            "import relay.rocketmq\n"
            "assert 'rocketmq' not in sys.modules and 'rocketmq.v5' not in sys.modules\n"
            "assert 'opentelemetry' not in sys.modules and not logging.root.handlers\n"
            "assert 'rocketmq-python-client' not in logging.root.manager.loggerDict",
        ],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert list(tmp_path.iterdir()) == []


def test_topics_create_makes_them_once_and_again(
    database: str, cluster: Cluster, broker: Broker
) -> None:
    prefix = f"c{uuid4().hex[:8]}"
    environment = {
        **os.environ,
        "AIVEDIO_DATABASE_URL": cluster.url(database.partition("?")[0].rpartition("/")[2]),
        "AIVEDIO_ROCKETMQ_ENDPOINTS": broker.servers.ports.endpoints,
        "AIVEDIO_ROCKETMQ_NAME_SERVERS": broker.servers.ports.name_servers,
        "AIVEDIO_ROCKETMQ_PREFIX": prefix,
    }

    def create(**more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "edge.cli.app", "topics", "create"]
        return subprocess.run(command, env={**environment, **more}, capture_output=True, text=True)

    for _ in range(2):
        made = create()
        assert made.returncode == 0, made.stderr
        assert f"Topic {prefix}_events and groups {prefix}_billing" in made.stdout
    eventually(lambda: broker.admin.is_routed(f"{prefix}_events"), 10)
    broker.drop(Rocketmq(broker.servers.ports.endpoints.split(","), prefix))
    away = create(AIVEDIO_ROCKETMQ_NAME_SERVERS="127.0.0.1:1")
    assert away.returncode == 1
    assert "127.0.0.1:1 does not answer" in away.stderr
    unnamed = create(AIVEDIO_ROCKETMQ_NAME_SERVERS="")
    assert unnamed.returncode == 2
    assert "AIVEDIO_ROCKETMQ_NAME_SERVERS" in unnamed.stderr
