"""Fixtures of the relay's tests: a writer of committed changes, and outages of the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from uuid import UUID

import psycopg
import pytest

from tests.py.conftest import Connect
from tests.py.support.clusters import Cluster

Outage = Callable[[], AbstractAsyncContextManager[None]]

# One committed change of a task, by the one function that writes them, and the bell rung last.
CHANGE = """
create or replace function fixture.change(p_task uuid, p_status text default 'running')
returns bigint
language plpgsql
as $change$
declare
  v_task aivedio.generation_tasks;
begin
  select task.* into v_task from aivedio.generation_tasks as task where task.id = p_task;
  perform from aivedio.project_streams as stream
  where stream.project_id = v_task.project_id for no key update;
  select task.* into v_task from aivedio.generation_tasks as task
  where task.id = p_task for no key update;
  v_task.status := p_status;
  v_task.asset_id := case when p_status = 'ready' then 'ast_1' end;
  v_task := aivedio._emit(v_task, v_task.current_attempt_id, 'poll');
  perform aivedio._ring_outbox(array[p_task]);
  return v_task.version;
end;
$change$
"""


class Writer:
    """Makes tasks and commits changes of them; every change is one outbox row."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection = connect(autocommit=True)
        self._connection.execute(CHANGE)
        self.written: dict[UUID, list[int]] = {}

    def tasks(self, count: int, prefix: str = "task") -> list[UUID]:
        """Return the ids of new tasks, two in each project, with no event yet."""
        rows = self._connection.execute(
            "select fixture.task(%s || n, p_status => 'running', p_version => 0,"
            " p_project => %s || n / 2) from generate_series(1, %s) as n",
            [prefix, prefix, count],
        )
        return [task for (task,) in rows]

    def change(self, task: UUID, status: str = "running") -> int:
        """Commit one change and return the task's new version."""
        row = self._connection.execute("select fixture.change(%s, %s)", [task, status]).fetchone()
        assert row is not None
        self.written.setdefault(task, []).append(row[0])
        return int(row[0])

    def begin(self, task: UUID) -> psycopg.Connection[tuple[object, ...]]:
        """Change a task in a transaction of its own that the caller commits."""
        session = self._connect()
        session.execute("select fixture.change(%s)", [task])
        return session

    def pending(self) -> int:
        return self._count("publish_status = 'pending'")

    def parked(self) -> list[tuple[UUID, int]]:
        return self._connection.execute(
            "select aggregate_id, aggregate_version from aivedio.outbox_events"
            " where publish_status = 'parked' order by id"
        ).fetchall()

    def _count(self, condition: str) -> int:
        row = self._connection.execute(
            f"select count(*) from aivedio.outbox_events where {condition}".encode()
        ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def writer(connect: Connect) -> Writer:
    return Writer(connect)


@pytest.fixture
def outage(cluster: Cluster, database: str) -> Iterator[Outage]:
    """Return a block in which the test's database ends every session and refuses new ones."""
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:

        @asynccontextmanager
        async def block() -> AsyncIterator[None]:
            admin.execute(f'alter database "{name}" allow_connections false'.encode())
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
            )
            try:
                yield
            finally:
                admin.execute(f'alter database "{name}" allow_connections true'.encode())

        yield block
