"""The poll process with real SQL and a real server: asked, interpreted, scheduled again."""

from __future__ import annotations

import asyncio
import re
from functools import partial

import orjson
import psycopg

from edge.intake import poll
from tests.py.intake.conftest import running
from tests.py.intake.jobs import Jobs
from tests.py.intake.server import Behave, Request, Writer, answer, serving
from tests.py.support.waiting import eventually_async


def says(status: str, **more: object) -> Behave:
    """Answer every poll with the job that it asks for, in this status."""

    async def behave(request: Request, writer: Writer) -> None:
        found = re.search(r"/v1/predictions/(\S+) ", request.line)
        assert found is not None
        body = orjson.dumps({"id": found[1], "status": status, **more})
        await answer(body)(request, writer)

    return behave


async def test_a_due_attempt_is_asked_about_and_the_answer_applied(
    database: str, jobs: Jobs
) -> None:
    """W25: no callback ever comes, and the task moves all the same."""
    async with serving(says("processing")) as server:
        jobs.provider_at(server.url)
        jobs.submitted(3)
        async with running(poll.run, database_url=database, worker="w"):
            await eventually_async(lambda: jobs.statuses() == ["running"] * 3)
            assert {request.headers["authorization"] for request in server.requests} == {
                "Bearer r8_test"
            }
            server.behave = says("succeeded", output="https://x.example/o.mp4")
            jobs.poll_now()
            await eventually_async(lambda: jobs.statuses() == ["provider_succeeded"] * 3)


async def test_a_job_is_due_again_on_its_own(database: str, jobs: Jobs) -> None:
    async with serving(says("starting")) as server:
        pace = {"interval_s": {"submitted": [0.1, 0.2], "queued": [0.1, 0.2]}}
        jobs.provider_at(server.url, poll=pace)
        jobs.submitted()
        async with running(poll.run, database_url=database, worker="w"):
            await eventually_async(lambda: len(server.requests) >= 3, timeout=15.0)


async def test_every_kind_of_failure_leaves_the_task_alone_and_is_counted(
    database: str, jobs: Jobs
) -> None:
    async def abort(_: Request, writer: Writer) -> None:
        writer.transport.abort()

    failures: list[Behave] = [
        abort,
        answer(b"<html>oops</html>", 502),
        answer(b"not json"),
        answer(b'{"x": "\\u0000"}'),
        answer(b"[" * 2000),
    ]
    async with serving(abort) as server:
        jobs.provider_at(server.url)
        jobs.submitted()
        async with running(poll.run, database_url=database, worker="w"):
            for place, behave in enumerate(failures):
                server.behave = behave
                jobs.poll_now()
                await eventually_async(partial(_has_faults, jobs, place + 1))
        assert jobs.statuses() == ["submitted"]


async def test_a_429_makes_the_bucket_wait(database: str, jobs: Jobs) -> None:
    async with serving(answer(b"{}", 429, {"retry-after": "30"})) as server:
        jobs.provider_at(server.url)
        jobs.submitted(3)
        async with running(poll.run, database_url=database, worker="w"):
            await eventually_async(
                lambda: jobs.session.execute(
                    "select 1 from aivedio.poll_quotas"
                    " where blocked_until > now() + interval '20 s'"
                ).fetchone()
            )
            asked = len(server.requests)
            jobs.poll_now()
            jobs.poll_now()
        assert len(server.requests) == asked
    assert set(jobs.attempts("poll_failures")) == {(0,)}


async def test_two_pollers_ask_once(database: str, jobs: Jobs) -> None:
    """P13"""
    async with serving(says("processing")) as server:
        jobs.provider_at(server.url)
        jobs.submitted(20)
        async with (
            running(poll.run, database_url=database, worker="one"),
            running(poll.run, database_url=database, worker="two"),
        ):
            await eventually_async(lambda: jobs.statuses() == ["running"] * 20)
        assert len({request.line for request in server.requests}) == 20
        assert len(server.requests) == 20


async def test_no_more_calls_at_once_than_slots(database: str, jobs: Jobs) -> None:
    open_calls, most = 0, 0
    gate = asyncio.Event()

    async def slow(request: Request, writer: Writer) -> None:
        nonlocal open_calls, most
        open_calls += 1
        most = max(most, open_calls)
        await gate.wait()
        open_calls -= 1
        await says("processing")(request, writer)

    async with serving(slow) as server:
        jobs.provider_at(server.url)
        jobs.submitted(9)
        async with running(poll.run, database_url=database, worker="w", slots=4):
            await eventually_async(lambda: open_calls == 4)
            gate.set()
            await eventually_async(lambda: jobs.statuses() == ["running"] * 9)
    assert most == 4


async def test_stopping_finishes_and_settles_the_calls_in_flight(database: str, jobs: Jobs) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, writer: Writer) -> None:
        asked.set()
        await gate.wait()
        await says("processing")(request, writer)

    async with serving(slow) as server:
        jobs.provider_at(server.url)
        jobs.submitted()
        async with running(poll.run, database_url=database, worker="w") as process:
            await asked.wait()
            process.stopping.set()
            gate.set()
        assert jobs.statuses() == ["running"]


async def test_an_outcome_waits_for_a_database_that_is_busy(database: str, jobs: Jobs) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, writer: Writer) -> None:
        asked.set()
        await gate.wait()
        await says("processing")(request, writer)

    async with serving(slow) as server:
        jobs.provider_at(server.url)
        jobs.submitted()
        async with running(poll.run, database_url=database, worker="w"):
            await asked.wait()
            with psycopg.connect(database) as holder:
                holder.execute("select 1 from aivedio.project_streams for update")
                gate.set()
                await eventually_async(lambda: _retries(jobs), timeout=15.0)
            await eventually_async(lambda: jobs.statuses() == ["running"])
        assert len(server.requests) == 1


async def test_what_a_dead_worker_had_claimed_is_asked_by_another(
    database: str, jobs: Jobs
) -> None:
    """P11"""
    async with serving(says("processing")) as server:
        jobs.provider_at(server.url)
        jobs.submitted(2)
        jobs.session.execute("update aivedio.settings set value = '1' where name = 'poll_lease_s'")
        jobs.session.execute("select aivedio.claim_polls('dead', 10)")
        async with running(poll.run, database_url=database, worker="alive"):
            await eventually_async(lambda: jobs.statuses() == ["running"] * 2)


async def test_a_late_answer_of_a_worker_that_lost_its_lease_is_ignored(
    database: str, jobs: Jobs
) -> None:
    """P10"""
    gate, asked = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, writer: Writer) -> None:
        asked.set()
        await gate.wait()
        await says("failed")(request, writer)

    async with serving(slow) as server:
        jobs.provider_at(server.url)
        jobs.submitted()
        async with running(poll.run, database_url=database, worker="w"):
            await asked.wait()
            jobs.session.execute("update aivedio.task_attempts set lease_token = lease_token + 1")
            gate.set()
        assert jobs.statuses() == ["submitted"]


async def test_a_poll_never_submits(database: str, jobs: Jobs) -> None:
    async with serving(says("processing")) as server:
        jobs.provider_at(server.url)
        jobs.create(3)
        jobs.submitted(3)
        async with running(poll.run, database_url=database, worker="w"):
            await eventually_async(lambda: jobs.statuses().count("running") == 6)
        assert all(request.line.startswith("GET ") for request in server.requests)


def _has_faults(jobs: Jobs, wanted: int) -> bool:
    """Whether so many faulty polls are counted."""
    ((faults,),) = jobs.attempts("poll_failures + malformed_polls")
    return int(faults) >= wanted


def _retries(jobs: Jobs) -> bool:
    """Whether a settlement has been refused by its lock timeout and waits once more."""
    row = jobs.session.execute(
        "select count(*) from pg_stat_activity where application_name = 'aivedio-poll'"
        " and datname = current_database() and wait_event_type = 'Lock'"
        " and query ~ 'settle_poll'"
    ).fetchone()
    return row is not None and row[0] > 0
