"""What takes two requests, by the real processes: a result elsewhere, a cancel that asks first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from edge.intake import poll, submit
from tests.py.intake.conftest import running
from tests.py.intake.jobs import Jobs
from tests.py.intake.server import Request, Server, Writer, answer, serving
from tests.py.support.waiting import eventually_async


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAL_KEY", "fal-key")
    monkeypatch.setenv("RUNWAYML_API_SECRET", "runway-key")


@asynccontextmanager
async def edges(database: str) -> AsyncIterator[None]:
    settings = {"database_url": database, "worker": "w"}
    async with (
        running(poll.run, **settings),
        running(submit.run, **settings, callback_url="https://us.example"),
    ):
        yield


def at(jobs: Jobs, provider: str, server: Server) -> None:
    profile = {"base_url": server.url, "local": True, "quota": {"provider": 100, "model": 100}}
    jobs.session.execute(
        "select aivedio.override_provider(%s, %s, 'a test', 'a server of its own')",
        [provider, orjson.dumps(profile).decode()],
    )


def wish(jobs: Jobs, provider: str, model: str) -> None:
    jobs.session.execute(
        "select aivedio.create_task(%s, %s, gen_random_uuid(), %s, %s, '{}')",
        [jobs.tenant, jobs.project, provider, model],
    )


def cancel(jobs: Jobs) -> None:
    jobs.session.execute(
        "select aivedio.request_cancel(task.tenant_id, task.project_id, task.id, task.user_id)"
        " from aivedio.generation_tasks as task"
    )


async def test_a_result_is_fetched_without_waiting_for_the_next_poll(
    database: str, jobs: Jobs
) -> None:
    async def behave(request: Request, writer: Writer) -> None:
        if request.line.startswith("POST"):
            body: object = {"request_id": "r1"}
        elif "/status" in request.line:
            body = {"status": "COMPLETED", "request_id": "r1"}
        else:
            body = {"video": {"url": "https://v3.fal.media/o.mp4"}}
        await answer(orjson.dumps(body))(request, writer)

    async with serving(behave) as server, edges(database):
        at(jobs, "fal", server)
        wish(jobs, "fal", "fal-ai/veo3")
        await eventually_async(lambda: jobs.statuses() == ["submitted"])
        jobs.poll_now()
        await eventually_async(lambda: jobs.statuses() == ["provider_succeeded"])
        lines = [request.line.split()[1] for request in server.requests[1:]]
    assert lines == ["/fal-ai/veo3/requests/r1/status", "/fal-ai/veo3/requests/r1"]
    assert jobs.attempts("poll_count, poll_answer") == [(2, None)]


async def test_a_cancel_that_could_destroy_asks_first(database: str, jobs: Jobs) -> None:
    deleted = asyncio.Event()

    async def behave(request: Request, writer: Writer) -> None:
        if request.line.startswith("DELETE"):
            deleted.set()
            await answer(b"", 204)(request, writer)
        elif deleted.is_set():
            await answer(b'{"error": "gone"}', 404)(request, writer)
        else:
            await answer(b'{"id": "t1", "status": "RUNNING"}')(request, writer)

    async with serving(behave) as server, edges(database):
        at(jobs, "runway", server)
        wish(jobs, "runway", "text_to_video/gen4")
        await eventually_async(lambda: jobs.statuses() == ["submitted"])
        cancel(jobs)
        await eventually_async(lambda: jobs.statuses() == ["canceled"], timeout=20.0)
        lines = [request.line.split()[0] for request in server.requests]
    assert lines[:3] == ["POST", "GET", "DELETE"]
    assert lines.count("DELETE") == 1


async def test_what_is_finished_is_not_destroyed_by_a_cancel(database: str, jobs: Jobs) -> None:
    async def behave(request: Request, writer: Writer) -> None:
        if request.line.startswith("POST"):
            await answer(b'{"id": "t1"}')(request, writer)
        else:
            body = {"id": "t1", "status": "SUCCEEDED", "output": ["https://cdn.example/o.mp4"]}
            await answer(orjson.dumps(body))(request, writer)

    async with serving(behave) as server, edges(database):
        at(jobs, "runway", server)
        wish(jobs, "runway", "text_to_video/gen4")
        await eventually_async(lambda: jobs.statuses() == ["submitted"])
        cancel(jobs)
        await eventually_async(lambda: jobs.statuses() == ["provider_succeeded"], timeout=20.0)
        assert [request.line.split()[0] for request in server.requests] == ["POST", "GET"]
