"""The submit process: at most once, whatever breaks."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import uuid

import orjson
import pytest

from edge.intake import submit
from tests.py.intake.conftest import running
from tests.py.intake.jobs import Jobs
from tests.py.intake.server import Behave, Request, Writer, answer, serving
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually_async

CALLBACKS = "https://hooks.example.com"


async def accept(request: Request, writer: Writer) -> None:
    """Accept every submission under a new id; confirm every cancel."""
    body = orjson.dumps({"id": f"job-{uuid.uuid4()}", "status": "starting"})
    await answer(body, 200 if "cancel" in request.line else 201)(request, writer)


async def test_a_new_task_is_submitted_as_the_profile_says(database: str, jobs: Jobs) -> None:
    async with serving(accept) as server:
        jobs.provider_at(server.url)
        async with running(submit.run, database_url=database, callback_url=CALLBACKS, worker="w"):
            jobs.create()
            await eventually_async(lambda: jobs.statuses() == ["submitted"])
        (request,) = server.requests
    assert request.line == "POST /v1/predictions HTTP/1.1"
    assert request.headers["authorization"] == "Bearer r8_test"
    sent = orjson.loads(request.body)
    assert sent["input"] == {"prompt": "x"}
    assert re.fullmatch(rf"{CALLBACKS}/callbacks/replicate/[A-Za-z0-9_-]{{40,}}", sent["webhook"])


async def test_many_tasks_are_submitted_once_each_by_several_processes(
    database: str, jobs: Jobs
) -> None:
    async with serving(accept) as server:
        jobs.provider_at(server.url)
        settings = {"database_url": database, "callback_url": CALLBACKS}
        async with (
            running(submit.run, **settings, worker="one", slots=4),
            running(submit.run, **settings, worker="two", slots=4),
        ):
            jobs.create(40)
            await eventually_async(lambda: jobs.statuses() == ["submitted"] * 40, timeout=20.0)
        assert len(server.requests) == 40
        assert len({orjson.loads(request.body)["webhook"] for request in server.requests}) == 40


async def broken(_: Request, writer: Writer) -> None:
    writer.transport.abort()


async def silent(_: Request, writer: Writer) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "behave",
    [broken, silent, answer(b"oops", 500), answer(b"{}", 201), answer(b"not json", 201)],
    ids=["broken", "silent", "error", "no id", "no json"],
)
async def test_without_a_clear_answer_the_outcome_is_unknown_and_never_repeated(
    database: str, jobs: Jobs, behave: Behave
) -> None:
    async with serving(behave) as server:
        jobs.provider_at(server.url, submit={"timeout_s": 1})
        async with running(submit.run, database_url=database, callback_url=CALLBACKS, worker="w"):
            jobs.create()
            await eventually_async(lambda: jobs.cases() == ["submit_unknown"])
            jobs.session.execute("select pg_notify('aivedio_submit', '0')")
            jobs.create()
            await eventually_async(lambda: jobs.cases() == ["submit_unknown"] * 2)
        assert len(server.requests) == 2
    assert jobs.statuses() == ["submitting"] * 2


async def test_a_refusal_fails_the_task(database: str, jobs: Jobs) -> None:
    async with serving(answer(b'{"detail": "invalid input"}', 422)) as server:
        jobs.provider_at(server.url)
        async with running(submit.run, database_url=database, callback_url=CALLBACKS, worker="w"):
            jobs.create()
            await eventually_async(lambda: jobs.statuses() == ["failed"])
        assert len(server.requests) == 1


async def test_what_never_left_is_sent_later(database: str, jobs: Jobs) -> None:
    """No connection means that the provider cannot have seen it: it is still one submission."""
    port = free_port()
    jobs.provider_at(f"http://127.0.0.1:{port}")
    async with running(submit.run, database_url=database, callback_url=CALLBACKS, worker="w"):
        jobs.create()
        await eventually_async(lambda: jobs.attempts("submit_state, submit_tries") == [("due", 1)])
        async with serving(accept) as server:
            jobs.provider_at(server.url)
            jobs.session.execute("update aivedio.task_attempts set submit_due_at = now()")
            jobs.session.execute("select pg_notify('aivedio_submit', '0')")
            await eventually_async(lambda: jobs.statuses() == ["submitted"])
            assert len(server.requests) == 1


async def test_killed_between_sending_and_settling_it_is_not_sent_again(
    database: str, jobs: Jobs
) -> None:
    asked = asyncio.Event()

    async def hang(_: Request, writer: Writer) -> None:
        asked.set()
        await asyncio.sleep(60)

    async with serving(hang) as server:
        jobs.provider_at(server.url)
        jobs.session.execute(
            "update aivedio.settings set value = '1' where name = 'submit_lease_s'"
        )
        jobs.create()
        environment = {
            **os.environ,
            "AIVEDIO_DATABASE_URL": database,
            "AIVEDIO_CALLBACK_URL": CALLBACKS,
        }
        process = subprocess.Popen(  # noqa: ASYNC220 - starting takes no time
            [sys.executable, "-m", "edge.cli.app", "submit"],
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(30):
                await asked.wait()
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
            process.wait(10)
        async with running(submit.run, database_url=database, callback_url=CALLBACKS, worker="w"):
            await eventually_async(lambda: jobs.cases() == ["submit_unknown"], timeout=15.0)
        assert len(server.requests) == 1
    assert jobs.attempts("submit_state") == [("unknown",)]


async def test_a_cancel_reaches_the_provider(database: str, jobs: Jobs) -> None:
    async with serving(accept) as server:
        jobs.provider_at(server.url)
        (task,) = jobs.submitted()
        async with running(submit.run, database_url=database, callback_url=CALLBACKS, worker="w"):
            jobs.session.execute(
                "select aivedio.request_cancel(%s, %s, %s, gen_random_uuid(), null)",
                [jobs.tenant, jobs.project, task],
            )
            await eventually_async(lambda: jobs.attempts("cancel_state") == [("accepted",)])
        (request,) = server.requests
    assert re.fullmatch(r"POST /v1/predictions/job-\S+/cancel HTTP/1.1", request.line)


async def test_stopping_waits_for_the_answer_to_a_submission(database: str, jobs: Jobs) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, writer: Writer) -> None:
        asked.set()
        await gate.wait()
        await accept(request, writer)

    async with serving(slow) as server:
        jobs.provider_at(server.url)
        settings = {"database_url": database, "callback_url": CALLBACKS, "worker": "w"}
        async with running(submit.run, **settings) as process:
            jobs.create()
            await asked.wait()
            process.stopping.set()
            gate.set()
    assert jobs.statuses() == ["submitted"]
