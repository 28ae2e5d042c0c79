"""A database is restored to an earlier moment: browsers reset and are right, no id comes twice."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.py.gateway.conftest import Gateway, Person, Reader, StartGateway
from tests.py.gateway.proxy import proxied
from tests.py.support import schema
from tests.py.support.clusters import Cluster, Run
from tests.py.support.sessions import rows, value
from tests.py.support.waiting import eventually, eventually_async

DATABASE = "aivedio"
THEN = "then"


def make_origin(run: Run, version: int) -> Cluster:
    """Start a server that archives its log, with a migrated database."""
    name = f"origin-{uuid.uuid4().hex[:6]}"
    cluster = run.start_cluster(name, version, run.archive(name))
    with psycopg.connect(cluster.conninfo(), autocommit=True) as session:
        session.execute(f"create database {DATABASE}")
    schema.apply(cluster.conninfo(DATABASE))
    return cluster


def wait_until_archived(origin: Cluster) -> None:
    with psycopg.connect(origin.conninfo(), autocommit=True) as session:
        last = value(session, "select pg_walfile_name(pg_switch_wal())")
        archived = "select coalesce(last_archived_wal >= %s, false) from pg_stat_archiver"
        eventually(lambda: value(session, archived, last), 30.0, "the log is archived")


async def snapshot(gateway: Gateway, person: Person) -> dict[str, int]:
    """Return what a page shows after a reset: each task's version."""
    (project,) = person.projects
    answer = await gateway.client.get(f"/projects/{project}/tasks", headers=person.bearer())
    assert answer.status_code == 200, answer.text
    return {task["id"]: task["task_version"] for task in answer.json()["tasks"]}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("version", [18, pytest.param(15, marks=pytest.mark.long)])
async def test_a_restore_to_an_earlier_moment(
    run: Run,
    version: int,
    start_gateway: StartGateway,
    person: Person,
    free_port: Callable[[], int],
) -> None:
    (project,) = person.projects
    origin = make_origin(run, version)
    async with proxied(free_port(), origin.port) as proxy:
        gateway = await start_gateway(
            database_url=make_conninfo(
                host="127.0.0.1", port=proxy.port, user="postgres", dbname=DATABASE
            )
        )
        gateway.database = origin.conninfo(DATABASE)
        kept = await gateway.create_task(person)
        backup = run.back_up(origin)
        also_kept = await gateway.create_task(person)
        with psycopg.connect(gateway.database, autocommit=True) as session:
            rows(session, "update aivedio.outbox_events set publish_status = 'published'")
            rows(session, "select pg_create_restore_point(%s)", THEN)
        lost = await gateway.create_task(person)
        async with gateway.follow(project, person.bearer(), cursor=0) as follower:
            await follower.until(lost["event_id"], within=15.0)

            wait_until_archived(origin)
            await proxy.cut()
            restored = run.restore(f"restored-{uuid.uuid4().hex[:6]}", origin, backup, THEN)
            proxy.target = restored.port
            gateway.database = restored.conninfo(DATABASE)
            await proxy.mend()

            # Who saw what was lost is told so, and is right after the snapshot.
            await resets(follower)
            assert follower.cursor == also_kept["event_id"]
            shown = await snapshot(gateway, person)
            assert set(shown) == {str(kept["task_id"]), str(also_kept["task_id"])}

            # The first change after the restore moves the ids far beyond all that were lost.
            new = await gateway.create_task(person)
            assert new["event_id"] > lost["event_id"] + 100_000_000
            await follower.until(new["event_id"], within=15.0)

        # Old cursors: one from before the moment goes on, one from after it starts again.
        async with gateway.follow(project, person.bearer(), cursor=kept["event_id"]) as reader:
            await reader.until(new["event_id"])
            assert reader.ids == [also_kept["event_id"], new["event_id"]]
        async with gateway.follow(project, person.bearer(), cursor=lost["event_id"]) as reader:
            assert (await reader.next()).event == "reset"
            assert reader.cursor == new["event_id"]

        with psycopg.connect(gateway.database, autocommit=True) as session:
            alarm = "select detail ->> 'reason' from aivedio.alarms where kind = 'restored'"
            assert value(session, alarm) == "lineage"
            # The relay looks at everything again that is not marked.
            assert value(session, "select coalesce(max(low), 0) from aivedio.queue_marks") == 0
            # What ran at the provider is submitted or asked about as if nothing had been.
            due = "select count(*) from aivedio.task_attempts where status = 'created'"
            assert value(session, due) == 3


async def resets(reader: Reader) -> None:
    """Return once the stream has told its reader to start again."""

    async def reset() -> bool:
        return (await reader.next(within=30.0)).event == "reset"

    await eventually_async(reset, 60.0)
