"""The harness keeps its promises: fresh databases, both versions, nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from redis.asyncio import Redis

from tests.py.conftest import Connect, ConnectAsync
from tests.py.support.waiting import eventually, wait_until_blocked


@pytest.mark.both_versions
def test_a_database_is_on_the_version_asked_for(connect: Connect, pg_version: int) -> None:
    row = connect().execute("select current_setting('server_version_num')::int / 10000").fetchone()
    assert row == (pg_version,)


async def test_a_session_acts_as_the_role_asked_for(connect_async: ConnectAsync) -> None:
    session = await connect_async(role="aivedio_webhook")
    cursor = await session.execute("select current_user, session_user")
    assert await cursor.fetchone() == ("aivedio_webhook", "postgres")


def test_each_test_has_a_database_of_its_own_first(connect: Connect) -> None:
    connect(autocommit=True).execute("create table public.mark ()")


def test_each_test_has_a_database_of_its_own_second(connect: Connect) -> None:
    connect(autocommit=True).execute("create table public.mark ()")


def test_a_blocked_backend_is_seen(connect: Connect, database: str) -> None:
    first, second = connect(), connect()
    first.execute("select pg_advisory_xact_lock(1)")
    waiter = Thread(target=second.execute, args=("select pg_advisory_xact_lock(1)",))
    waiter.start()
    wait_until_blocked(database, second.info.backend_pid)
    first.commit()
    waiter.join(10.0)
    assert not waiter.is_alive()


async def test_a_private_valkey_answers(valkey: str) -> None:
    async with Redis.from_url(valkey) as client:
        assert await client.ping()


def test_a_killed_runner_leaves_no_server() -> None:
    program = (
        "import time; from tests.py.support.clusters import Run; run = Run.begin();"
        "cluster = run.start_cluster('mine'); print(run.folder, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        folder = Path(runner.stdout.readline().decode().strip())
        server = int((folder / "mine" / "pid").read_text())
        os.kill(server, 0)
        runner.send_signal(signal.SIGKILL)
    eventually(lambda: not folder.exists(), what="the run's folder is gone")
    assert not Path(f"/proc/{server}").exists()
