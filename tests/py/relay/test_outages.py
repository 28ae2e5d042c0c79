"""
Whatever dies or hangs on the way under load, each change has its effect once and none is missing.

Two relays, two dispatchers and a consumer run as processes; a fault hits one of them or a server
behind them. Then every change has reached every group, in order per task; media operations and
ledger rows are those that the changes ask for, once; every browser has everything, in order.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

import httpx
import pytest

from relay import buses
from relay.bus import BEAT, BusDown, Delivery
from relay.buses import Rocketmq
from tests.py.conftest import Connect
from tests.py.gateway.conftest import Gateway, Person, StartGateway, start_gateway
from tests.py.relay.system import Load, Processes, Redis, hung, in_order, restarted
from tests.py.support.clusters import Cluster, Run
from tests.py.support.rocketmq import NAME_SERVER, Broker
from tests.py.support.waiting import eventually_async

__all__ = ["start_gateway"]

ON_ROCKETMQ = pytest.mark.xdist_group("rocketmq")

AUDIT = "audit"
PROCESSES = ("relay-1", "relay-2", "dispatch-1", "dispatch-2", "consume-1")
SHORT = 2.0
LONG = 20.0


class Audit:
    """One more consumer group, which takes everything and remembers what came."""

    def __init__(self, database: str, rocketmq: Rocketmq | None) -> None:
        self._database = database
        self._rocketmq = rocketmq
        self.versions: dict[UUID, list[int]] = defaultdict(list)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        async with (
            buses.consumer(self._database, self._rocketmq) as bus,
            bus.subscribe(AUDIT, visibility=10.0) as subscription,
        ):
            while True:
                try:
                    batch = await subscription.receive(200, 0.5)
                    # Noted before the acknowledgement, whose own outcome may stay unknown.
                    self._note(batch)
                    await subscription.ack(batch)
                except BusDown:
                    await asyncio.sleep(0.2)

    def _note(self, batch: Sequence[Delivery]) -> None:
        for one in batch:
            if one.message.tag != BEAT:
                version = one.message.body["aggregate_version"]
                self.versions[one.message.task_id].append(version)


class Browser:
    """Follows a project and, like the page, comes back with its cursor when a stream ends."""

    def __init__(self, gateway: Gateway, tenant: UUID, project: UUID) -> None:
        self._gateway = gateway
        self._person = Person(projects=(project,), tenant=tenant)
        self.project = project
        self.cursor = 0
        self.ids: list[int] = []
        self.resets = 0

    async def follow(self) -> None:
        while True:
            headers = self._person.bearer()
            async with self._gateway.follow(self.project, headers, cursor=self.cursor) as reader:
                reader.ids = self.ids
                try:
                    while True:
                        event = await reader.next(within=600.0)
                        self.resets += event.event == "reset"
                        self.cursor = reader.cursor or 0
                except (StopAsyncIteration, httpx.TransportError):
                    continue


class Stage:
    """A system under load, and the faults that it knows."""

    def __init__(
        self, processes: Processes, redis: Redis, broker: Broker | None, load: Load, audit: Audit
    ) -> None:
        self._processes = processes
        self._redis = redis
        self._broker = broker
        self.redis_url = processes.redis_url
        self.load = load
        self.audit = audit

    async def kill(self, victim: str, seconds: float) -> None:
        if victim == "redis":
            await restarted(self._redis.kill, self._redis.start, seconds)
        elif victim in ("broker", "names"):
            assert self._broker is not None
            broker, name = self._broker, NAME_SERVER if victim == "names" else None
            await restarted(
                lambda: broker.kill(name) if name else broker.kill(), broker.start, seconds
            )
        else:
            processes = self._processes
            await restarted(
                lambda: processes.kill(victim), lambda: processes.start(victim), seconds
            )

    async def hang(self, victim: str, seconds: float) -> None:
        if victim == "redis":
            pid = self._redis.pid
        elif victim in ("broker", "names"):
            assert self._broker is not None
            pid = self._broker.pid(NAME_SERVER) if victim == "names" else self._broker.pid()
        else:
            pid = self._processes.running[victim].pid
        await hung(pid, seconds)


Begin = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def begin(
    request: pytest.FixtureRequest, database: str, cluster: Cluster, connect: Connect, run: Run
) -> AsyncIterator[Begin]:
    """Return a function that starts everything: on RocketMQ or not, at so many changes a second."""
    name = database.partition("?")[0].rpartition("/")[2]
    async with AsyncExitStack() as ends:

        async def start(bus: str, rate: float) -> Stage:
            admin = connect(autocommit=True)
            admin.execute("insert into aivedio.consumer_groups (name) values (%s)", [AUDIT])
            admin.execute("select aivedio.ensure_bus()")
            broker = rocketmq = None
            if bus == "rocketmq":
                broker = await asyncio.to_thread(request.getfixturevalue, "broker")
                rocketmq = broker.topic()
                ends.callback(broker.drop, rocketmq)
                ends.callback(broker.ready)
                broker.admin.create(rocketmq.topic, {rocketmq.group(AUDIT): True})
            redis = Redis(run)
            redis_url = redis.start()
            ends.callback(lambda: run.stop(redis.keeper))
            processes = Processes(cluster.url(name), redis_url, rocketmq)
            ends.callback(processes.stop_all)
            for process in PROCESSES:
                await asyncio.to_thread(processes.start, process)
            load = Load(database, rate)
            ends.callback(load.close)
            audit = Audit(database, rocketmq)
            await ends.enter_async_context(audit.listening())
            return Stage(processes, redis, broker, load, audit)

        yield start


async def everything_arrives(
    stage: Stage,
    gateway: Gateway,
    faults: Callable[[], Awaitable[None]],
    within: float,
) -> None:
    """Have the faults happen under load, end the load, and check all that must hold then."""
    load = stage.load
    browsers = [
        Browser(gateway, load.tenant, project) for project in load.projects for _ in range(2)
    ]
    following = [asyncio.create_task(browser.follow()) for browser in browsers]
    load.start()
    try:
        await faults()
    finally:
        await asyncio.to_thread(load.finish)

    def all_came() -> bool:
        return all(
            set(versions) <= set(stage.audit.versions[task])
            for task, versions in load.written.items()
        )

    await eventually_async(all_came, within, "every change has reached the audit")
    await eventually_async(lambda: _effects(load) == _wanted(load), within, "every effect, once")
    heads = load.heads()

    def behind() -> list[int]:
        return [heads[one.project] - one.cursor for one in browsers]

    def all_seen() -> bool:
        assert not any(task.done() for task in following), following
        assert set(behind()) == {0}, behind()
        return True

    await eventually_async(all_seen, within, "every browser has everything")
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    for task_id, versions in load.written.items():
        assert in_order(stage.audit.versions[task_id], versions)
    for browser in browsers:
        expected = load.count(
            f"select count(*) from aivedio.task_events where project_id = '{browser.project}'"
        )
        assert len(browser.ids) == expected, "each event once"
        assert browser.resets == 0


def _effects(load: Load) -> dict[str, int]:
    return {
        "operations": load.count("select count(*) from aivedio.media_operations"),
        "reserved": load.count(
            "select count(*) from aivedio.credit_ledger where ledger_type = 'reserve'"
        ),
        "refunded": load.count(
            "select count(*) from aivedio.credit_ledger where ledger_type = 'refund'"
        ),
        "owed": load.count(
            "select count(*) from aivedio.outbox_events where publish_status <> 'published'"
        ),
        "dead": load.count("select count(*) from pgmq.a_aivedio_media")
        + load.count("select count(*) from pgmq.a_aivedio_billing")
        + load.count("select count(*) from pgmq.a_aivedio_dispatcher"),
    }


def _wanted(load: Load) -> dict[str, int]:
    return {
        "operations": len(load.good),
        "reserved": len(load.good) + len(load.bad),
        "refunded": len(load.bad),
        "owed": 0,
        "dead": 0,
    }


@ON_ROCKETMQ
@pytest.mark.timeout(600)
async def test_on_rocketmq_nothing_is_lost_or_done_twice(
    begin: Begin, start_gateway: StartGateway
) -> None:
    # O1, O5, R1, R14: each of them killed, and each of them hung.
    stage = await begin("rocketmq", 40)
    gateway = await start_gateway(redis_url=stage.redis_url)

    async def faults() -> None:
        for victim in ("relay-1", "dispatch-1", "consume-1", "redis"):
            await stage.kill(victim, 0.2)
        for victim in ("broker", "relay-2", "dispatch-2", "consume-1", "redis"):
            await stage.hang(victim, SHORT)
        await stage.kill("names", 0.2)
        await stage.kill("broker", 0.2)

    await everything_arrives(stage, gateway, faults, within=120)


@pytest.mark.timeout(600)
async def test_on_pgmq_nothing_is_lost_or_done_twice(
    begin: Begin, start_gateway: StartGateway
) -> None:
    stage = await begin("pgmq", 100)
    gateway = await start_gateway(redis_url=stage.redis_url)

    async def faults() -> None:
        for victim in ("relay-1", "dispatch-1", "consume-1", "redis"):
            await stage.kill(victim, 0.2)
            await stage.hang(victim, SHORT)

    await everything_arrives(stage, gateway, faults, within=120)


@ON_ROCKETMQ
@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("how", ["kill", "hang"])
@pytest.mark.parametrize(
    ("bus", "victim"),
    [
        ("rocketmq", "broker"),
        ("rocketmq", "names"),
        ("rocketmq", "relay-1"),
        ("rocketmq", "dispatch-1"),
        ("rocketmq", "consume-1"),
        ("rocketmq", "redis"),
        ("pgmq", "relay-1"),
        ("pgmq", "dispatch-1"),
        ("pgmq", "consume-1"),
        ("pgmq", "redis"),
    ],
)
async def test_under_load_one_of_them_is_away_for_long(
    begin: Begin, start_gateway: StartGateway, bus: str, victim: str, how: str
) -> None:
    stage = await begin(bus, 300 if bus == "rocketmq" else 1000)
    gateway = await start_gateway(redis_url=stage.redis_url)

    async def faults() -> None:
        await asyncio.sleep(3.0)
        await (stage.kill if how == "kill" else stage.hang)(victim, LONG)
        await asyncio.sleep(3.0)

    await everything_arrives(stage, gateway, faults, within=180)


@ON_ROCKETMQ
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_broker_that_is_away_for_five_minutes(
    begin: Begin, start_gateway: StartGateway
) -> None:
    stage = await begin("rocketmq", 100)
    gateway = await start_gateway(redis_url=stage.redis_url)

    async def faults() -> None:
        await stage.kill("broker", 300.0)

    await everything_arrives(stage, gateway, faults, within=300)
