"""The reader's side of the bell: nothing is overlooked, and an awake reader is not rung for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from edge import doorbell, errors
from edge.doorbell import AGAIN, IDLE, Doorbell
from edge.listener import Listener, follow
from tests.py.support.waiting import eventually_async
from tests.py.support.wire import wire

ROLE = "aivedio_inbox"
CHANNEL = "aivedio_inbox"
NEVER = (3600.0, 3600.0)

Connect = Callable[..., psycopg.Connection[Any]]


class Work:
    """A queue in PostgreSQL and the look that empties it."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo
        self.taken: list[int] = []
        self.looks = 0
        self.gate = asyncio.Event()
        self.gate.set()
        with psycopg.connect(conninfo, autocommit=True) as owner:
            owner.execute("create table t_work (n int)")

    async def look(self) -> float | None:
        self.looks += 1
        await self.gate.wait()
        async with await psycopg.AsyncConnection.connect(self.conninfo, autocommit=True) as session:
            taken = await (await session.execute("delete from t_work returning n")).fetchall()
        self.taken += [n for (n,) in taken]
        return AGAIN if taken else IDLE


@pytest.fixture
def work(database: str) -> Work:
    return Work(database)


@asynccontextmanager
async def serving(bell: Doorbell, look: Any) -> AsyncIterator[asyncio.Event]:
    stopping = asyncio.Event()
    task = asyncio.create_task(bell.serve(look, stopping=stopping))
    try:
        yield stopping
    finally:
        stopping.set()
        async with asyncio.timeout(5):
            await task


def a_bell(database: str, **settings: Any) -> Doorbell:
    return Doorbell(database, role=ROLE, channel=CHANNEL, **{"safety": NEVER, **settings})


def write(session: psycopg.Connection[Any], n: int, shard: int = 0) -> None:
    session.execute("insert into t_work values (%s)", [n])
    session.execute("select aivedio._ring(%s, %s::smallint)", [CHANNEL, shard])


def sleeping(connect: Connect) -> Callable[[], bool]:
    """Return a check: the reader listens and holds no bell."""
    watcher = connect(autocommit=True)

    def check() -> bool:
        row = watcher.execute(
            "select count(*) filter (where query ~ 'bell_quiet|^select 1$' and state = 'idle'),"
            " (select count(*) from pg_locks where locktype = 'advisory')"
            " from pg_stat_activity where application_name = 'aivedio-inbox'"
            " and datname = current_database()"
        ).fetchone()
        return row == (1, 0)

    return check


async def test_a_ring_wakes_a_sleeping_reader(database: str, work: Work, connect: Connect) -> None:
    async with serving(a_bell(database), work.look):
        await eventually_async(sleeping(connect))
        write(connect(autocommit=True), 1)
        await eventually_async(lambda: work.taken == [1], timeout=1.0)


async def test_no_ring_while_the_reader_is_awake_and_nothing_lost(
    database: str, work: Work, connect: Connect
) -> None:
    listener = connect(autocommit=True)
    listener.execute(f"listen {CHANNEL}")
    work.gate.clear()
    async with serving(a_bell(database), work.look):
        await eventually_async(lambda: work.looks == 1)
        write(connect(autocommit=True), 1)
        assert list(listener.notifies(timeout=0)) == []
        work.gate.set()
        await eventually_async(lambda: work.taken == [1])


async def test_a_writer_that_was_refused_the_bell_and_commits_late_is_seen(
    database: str, work: Work, connect: Connect
) -> None:
    """Its row is invisible to the last look, and it never rings."""
    work.gate.clear()
    async with serving(a_bell(database), work.look):
        await eventually_async(lambda: work.looks == 1)
        late = connect()
        write(late, 1)
        work.gate.set()
        # The reader has released its bell, found nothing, and must still be looking.
        await eventually_async(lambda: work.looks > 5)
        assert work.taken == []
        late.commit()
        await eventually_async(lambda: work.taken == [1], timeout=1.0)
        await eventually_async(sleeping(connect))


async def test_a_reader_sleeps_at_once_when_nobody_writes(
    database: str, work: Work, connect: Connect
) -> None:
    async with serving(a_bell(database), work.look):
        # One look, and one more after everybody was over. Other tests' transactions in this
        # cluster may have to be waited for, too, so there may be a few more.
        await eventually_async(lambda: work.looks >= 2)
        await eventually_async(sleeping(connect))
        before = work.looks
        write(connect(autocommit=True), 1)
        # Found; nothing more; nothing more after everybody was over.
        await eventually_async(lambda: work.looks >= before + 3)
        await eventually_async(sleeping(connect))
        assert work.looks < 40


async def test_a_ring_for_another_shard_wakes_nobody(
    database: str, work: Work, connect: Connect
) -> None:
    async with serving(a_bell(database, shards=[1, 2]), work.look):
        await eventually_async(sleeping(connect))
        looks = work.looks
        session = connect(autocommit=True)
        write(session, 1, shard=5)
        write(session, 2, shard=2)
        await eventually_async(lambda: sorted(work.taken) == [1, 2])
        assert work.looks > looks


async def test_the_safety_look_finds_what_nobody_rang_for(
    database: str, work: Work, connect: Connect
) -> None:
    async with serving(a_bell(database, safety=(0.1, 0.2)), work.look):
        await eventually_async(sleeping(connect))
        connect(autocommit=True).execute("insert into t_work values (1)")
        await eventually_async(lambda: work.taken == [1], timeout=2.0)


async def test_a_look_may_ask_for_the_next_one(database: str) -> None:
    times: list[float] = []

    async def look() -> float | None:
        times.append(time.monotonic())
        return 0.05

    async with serving(a_bell(database), look):
        await eventually_async(lambda: len(times) >= 8)


async def test_a_shake_from_within_wakes_the_reader(
    database: str, work: Work, connect: Connect
) -> None:
    bell = a_bell(database)
    async with serving(bell, work.look):
        await eventually_async(sleeping(connect))
        connect(autocommit=True).execute("insert into t_work values (1)")
        bell.shake()
        await eventually_async(lambda: work.taken == [1], timeout=1.0)


async def test_a_killed_connection_is_replaced_and_a_look_follows_at_once(
    database: str, work: Work, connect: Connect
) -> None:
    """O10, O11: one reconnect, and what was rung meanwhile is found."""
    async with serving(a_bell(database), work.look):
        await eventually_async(sleeping(connect))
        superuser = connect(autocommit=True)
        superuser.execute("insert into t_work values (1)")
        superuser.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'aivedio-inbox' and datname = current_database()"
        )
        await eventually_async(lambda: work.taken == [1], timeout=3.0)
        await eventually_async(sleeping(connect))


async def test_a_failing_look_is_repeated_with_growing_pauses_and_told(database: str) -> None:
    """W17: a missing dependency causes no busy loop."""
    tries: list[float] = []
    told: list[bool] = []

    async def look() -> float | None:
        tries.append(time.monotonic())
        if len(tries) < 6:
            raise errors.DatabaseDown("no") if len(tries) % 2 else RuntimeError("defect")
        return IDLE

    stopping = asyncio.Event()
    task = asyncio.create_task(a_bell(database).serve(look, stopping=stopping, ready=told.append))
    await eventually_async(lambda: told[-1:] == [True], timeout=20.0)
    stopping.set()
    await task
    assert told[:5] == [False] * 5
    assert tries[5] - tries[0] > 1.0


async def test_an_idle_reader_proves_that_its_server_lives(
    database: str, work: Work, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions may be ended for idleness sooner than the safety look would come."""
    monkeypatch.setattr(doorbell, "HEARTBEAT", 0.1)
    # Long enough for a loaded machine, and short beside the safety look.
    bell = a_bell(database, settings={"idle_session_timeout": "2500"})
    async with serving(bell, work.look):
        await eventually_async(lambda: work.looks == 2)
        watcher = connect(autocommit=True)
        await eventually_async(
            lambda: watcher.execute(
                "select 1 from pg_stat_activity where application_name = 'aivedio-inbox'"
                " and datname = current_database() and now() - backend_start > interval '3 s'"
            ).fetchone()
        )
        assert work.looks == 2


async def test_a_hung_connection_is_left_for_a_new_one(
    database: str, work: Work, connect: Connect, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O10: no FIN, no answer; within seconds the reader listens on another connection."""
    monkeypatch.setattr(doorbell, "HEARTBEAT", 0.2)
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    async with wire("127.0.0.1", cluster.port) as laid:
        near = f"postgresql://postgres@127.0.0.1:{laid.port}/{name}"
        async with serving(a_bell(near), work.look):
            await eventually_async(sleeping(connect))
            before = laid.accepted
            laid.hold()
            connect(autocommit=True).execute("insert into t_work values (1)")
            # The looks do not use the dead connection, so they come all the same.
            await eventually_async(lambda: work.taken == [1], timeout=5.0)
            # Mended earlier, the old connection would answer after all.
            await eventually_async(lambda: laid.accepted > before, timeout=30.0)
            laid.mend()
            await eventually_async(sleeping(connect))


async def test_no_database_and_back(cluster: Any, database: str) -> None:
    """A reader that starts before its database works as soon as it is there."""
    looks = 0

    async def look() -> float | None:
        nonlocal looks
        looks += 1
        return IDLE

    nowhere = a_bell(f"host={cluster.socket} port=1 dbname=x user=postgres", safety=(0.1, 0.2))
    async with serving(nowhere, look):
        await eventually_async(lambda: looks >= 3, timeout=5.0)


async def test_two_readers_of_one_bell_both_work(
    database: str, work: Work, connect: Connect
) -> None:
    async with serving(a_bell(database), work.look), serving(a_bell(database), work.look):
        await eventually_async(lambda: work.looks >= 4)
        session = connect(autocommit=True)
        for n in range(50):
            write(session, n)
        await eventually_async(lambda: sorted(work.taken) == list(range(50)))


async def test_nothing_is_lost_among_many_writers(
    database: str, work: Work, connect: Connect
) -> None:
    total, writers = 400, 8
    sessions = [connect(autocommit=True) for _ in range(writers)]

    def storm(part: int) -> None:
        for n in range(part, total, writers):
            with sessions[part].transaction():
                write(sessions[part], n)

    async with serving(a_bell(database), work.look):
        await asyncio.gather(*(asyncio.to_thread(storm, part) for part in range(writers)))
        await eventually_async(lambda: len(work.taken) == total, timeout=5.0)
    assert sorted(work.taken) == list(range(total))


async def test_stopping_lets_the_look_in_progress_finish(database: str) -> None:
    entered, finished = asyncio.Event(), asyncio.Event()

    async def look() -> float | None:
        entered.set()
        await asyncio.sleep(0.2)
        finished.set()
        return AGAIN

    async with serving(a_bell(database), look):
        await entered.wait()
    assert finished.is_set()


async def test_notes_that_arrive_during_a_statement_are_kept(
    database: str, connect: Connect
) -> None:
    """R7: a statement on the listening session swallows no notification."""
    listener = Listener(database, role=ROLE, channels=["t_news"])
    await listener.open()
    session = connect(autocommit=True)
    for n in range(20):
        session.execute("select pg_notify('t_news', %s)", [str(n)])
        await listener.rows("bell_quiet", p_xid="3")
    heard: list[str] = []
    while len(heard) < 20:
        news = await listener.wait(1.0)
        assert news.notes
        heard += [note.payload for note in news.notes]
    assert heard == [str(n) for n in range(20)]
    await listener.close()


async def test_a_flood_of_notes_is_bounded_and_said(
    database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener(database, role=ROLE, channels=["t_news"])
    await listener.open()
    connect(autocommit=True).execute(
        "select pg_notify('t_news', n::text) from generate_series(1, 6000) as n"
    )
    missed = False
    for _ in range(1000):
        news = await listener.wait(0.2)
        assert len(news.notes) <= 4096
        missed = missed or news.missed
        if not news.notes:
            break
    await listener.close()


async def test_follow_refreshes_after_each_connect(database: str, connect: Connect) -> None:
    listener = Listener(database, role="aivedio_gateway", channels=["aivedio_control"])
    heard: list[str] = []
    refreshes = 0
    stopping = asyncio.Event()

    async def hear(note: psycopg.Notify) -> None:
        heard.append(note.payload)

    async def refresh() -> None:
        nonlocal refreshes
        refreshes += 1

    task = asyncio.create_task(follow(listener, heard=hear, refresh=refresh, stopping=stopping))
    await eventually_async(lambda: refreshes == 1)
    superuser = connect(autocommit=True)
    superuser.execute("select pg_notify('aivedio_control', 'x')")
    await eventually_async(lambda: heard == ["x"])
    superuser.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'aivedio-gateway' and datname = current_database()"
    )
    await eventually_async(lambda: refreshes == 2, timeout=3.0)
    stopping.set()
    async with asyncio.timeout(2.0):
        await task
