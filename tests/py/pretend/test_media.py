"""The pretend media plane against the real functions, with files from the pretend provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from edge.pretend import media
from tests.py.conftest import Connect
from tests.py.pretend.conftest import Provider, until

OPEN = """
    select aivedio.open_media(jsonb_build_object(
      'aggregate_id', fixture.id('task'), 'attempt_id', fixture.id('attempt of task'),
      'status', 'provider_succeeded', 'event_id', 1
    ))
"""
OUTPUT = """
    insert into aivedio.attempt_outputs (attempt_id, ordinal, url, expires_at, created_at)
    values (fixture.id('attempt of task'), 0, %s, now() + interval '1 hour', now())
"""
TASK = """
    select status, stage, error_code, asset_id from aivedio.generation_tasks
    where id = fixture.id('task')
"""
OPERATIONS = """
    select operation_type, status, tries, error_class from aivedio.media_operations
    order by created_at
"""
STAGES = """
    select distinct on (public_payload ->> 'stage') public_payload ->> 'stage'
    from aivedio.task_events where task_id = fixture.id('task')
"""
Session = psycopg.Connection[Any]


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect(autocommit=True)


@asynccontextmanager
async def working(database: str, worker: str = "w") -> AsyncIterator[None]:
    """Run a media plane against the database."""
    stopping = asyncio.Event()
    task = asyncio.create_task(
        media.run(
            database_url=database,
            worker=worker,
            stopping=stopping,
            ready=lambda _: None,
            step_s=0.01,
        )
    )
    try:
        yield
    finally:
        stopping.set()
        async with asyncio.timeout(10):
            await task


async def output(pretend: Provider, **plan: Any) -> str:
    """Let the provider finish a job and return its output's address."""
    made = await pretend.make(plan)
    return str((await pretend.ends(made["id"], "succeeded"))["output"])


def succeed(session: Session, url: str) -> None:
    """Put the task where the provider has succeeded with this output, and open its media work."""
    session.execute("select fixture.job('task', 'provider_succeeded')")
    session.execute(OUTPUT, [url])
    assert session.execute(OPEN).fetchone() == ("opened",)


def shows(session: Session, status: str) -> Callable[[], bool]:
    def check() -> bool:
        row = session.execute(TASK).fetchone()
        return row is not None and row[0] == status

    return check


def operations(session: Session) -> list[tuple[Any, ...]]:
    return session.execute(OPERATIONS).fetchall()


async def test_a_file_becomes_an_asset_through_every_stage(
    database: str, session: Session, pretend: Provider
) -> None:
    succeed(session, await output(pretend))
    async with working(database):
        await until(shows(session, "ready"), timeout=20)
    assert operations(session) == [
        (operation, "done", 1, None) for operation in ("backhaul", "verify", "transcode", "publish")
    ]
    stages = {stage for (stage,) in session.execute(STAGES)}
    assert stages == {"backhauling", "verifying", "transcoding", "publishing", "ready"}
    row = session.execute(TASK).fetchone()
    assert row is not None and row[3].startswith("ast_")


@pytest.mark.parametrize("fault", ["file_error", "file_truncated"])
async def test_a_download_that_fails_is_tried_again(
    database: str, session: Session, pretend: Provider, fault: str
) -> None:
    succeed(session, await output(pretend, faults=[fault]))
    async with working(database):
        await until(shows(session, "ready"), timeout=30)
    assert operations(session)[0] == ("backhaul", "done", 2, "source_unavailable")
    assert (await pretend.faults())[fault] == 1


@pytest.mark.parametrize(
    ("fault", "last"),
    [
        ("file_gone", ("backhaul", "failed", 1, "source_gone")),
        ("file_corrupt", ("verify", "failed", 1, "source_corrupt")),
        ("media_failed", ("transcode", "failed", 1, "transcode_failed")),
    ],
)
async def test_what_cannot_be_mended_fails_the_task(
    database: str, session: Session, pretend: Provider, fault: str, last: tuple[Any, ...]
) -> None:
    succeed(session, await output(pretend, faults=[fault]))
    async with working(database):
        await until(shows(session, "failed"), timeout=20)
    assert operations(session)[-1] == last
    row = session.execute(TASK).fetchone()
    assert row is not None and row[2] == "media_failed"
    assert (await pretend.faults())[fault] == 1


async def test_a_transcoder_that_fails_once_is_tried_again(
    database: str, session: Session, pretend: Provider
) -> None:
    succeed(session, await output(pretend, faults=["media_flaky"]))
    async with working(database):
        await until(shows(session, "ready"), timeout=30)
    assert operations(session)[2] == ("transcode", "done", 2, "transcode_failed")


async def test_an_abandoned_operation_is_taken_up_when_its_lease_has_run_out(
    database: str, session: Session, pretend: Provider
) -> None:
    session.execute("update aivedio.settings set value = '1' where name = 'media_lease_s'")
    succeed(session, await output(pretend, faults=["media_crash"]))
    async with working(database):
        await until(shows(session, "ready"), timeout=30)
    assert operations(session)[2] == ("transcode", "done", 2, None)
    assert (await pretend.faults())["media_crash"] == 1


async def test_two_workers_do_each_operation_once(
    database: str, session: Session, pretend: Provider
) -> None:
    succeed(session, await output(pretend))
    async with working(database, "one"), working(database, "two"):
        await until(shows(session, "ready"), timeout=20)
    assert [tries for _, _, tries, _ in operations(session)] == [1, 1, 1, 1]


async def test_work_for_a_task_that_went_another_way_is_dropped(
    database: str, session: Session, pretend: Provider
) -> None:
    succeed(session, await output(pretend))
    session.execute(
        "update aivedio.generation_tasks set status = 'canceled', stage = 'canceled', "
        "terminal_at = now() where id = fixture.id('task')"
    )
    async with working(database):
        await until(lambda: operations(session)[0][1] == "failed", timeout=20)
    assert operations(session) == [("backhaul", "failed", 0, "not_wanted")]
