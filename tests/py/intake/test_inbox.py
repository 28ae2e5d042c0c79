"""The inbox process: rung for, it empties the inbox; what passes is tried again."""

from __future__ import annotations

import asyncio

import orjson
import psycopg
import pytest

from edge.intake import inbox as inbox_process
from tests.py.intake.conftest import Edge, Inbox, running
from tests.py.intake.jobs import Jobs
from tests.py.support.waiting import eventually_async


def body(jobs: Jobs, status: str, place: int = 0) -> bytes:
    job = jobs.attempts("provider_task_id")[place][0]
    return orjson.dumps({"id": job, "status": status, "output": ["https://x.example/o.mp4"]})


async def test_a_callback_becomes_a_state_within_a_moment(
    database: str, edge: Edge, jobs: Jobs, inbox: Inbox
) -> None:
    jobs.submitted()
    async with running(inbox_process.run, database_url=database):
        await edge.deliver(body(jobs, "processing"), event_id="a")
        await eventually_async(lambda: jobs.statuses() == ["running"], timeout=2.0)
        await edge.deliver(body(jobs, "succeeded"), event_id="b")
        await eventually_async(lambda: jobs.statuses() == ["provider_succeeded"], timeout=2.0)
        await edge.deliver(body(jobs, "processing"), event_id="late")
        await eventually_async(
            lambda: [s for (s,) in inbox.rows("process_status")] == ["done"] * 3, timeout=2.0
        )
    assert jobs.statuses() == ["provider_succeeded"]


async def test_what_waited_before_the_start_is_processed_in_batches(
    database: str, edge: Edge, jobs: Jobs, inbox: Inbox
) -> None:
    jobs.submitted(30)
    await asyncio.gather(
        *(edge.deliver(body(jobs, "processing", n), event_id=f"e{n}") for n in range(30))
    )
    async with running(inbox_process.run, database_url=database, batch=7):
        await eventually_async(lambda: jobs.statuses() == ["running"] * 30)


async def test_a_task_that_somebody_holds_is_tried_again(
    database: str, edge: Edge, jobs: Jobs, inbox: Inbox, capfd: pytest.CaptureFixture[str]
) -> None:
    """55P03: the batch is as it was, and the reader comes back."""
    jobs.submitted()
    async with running(inbox_process.run, database_url=database) as process:
        with psycopg.connect(database) as holder:
            holder.execute("select 1 from aivedio.project_streams for update")
            await edge.deliver(body(jobs, "processing"))
            await eventually_async(lambda: "look failed" in "".join(capfd.readouterr()))
            assert process.is_ready
            assert inbox.rows("process_status") == [("pending",)]
        await eventually_async(lambda: jobs.statuses() == ["running"])


async def test_two_workers_on_their_own_shards_empty_the_inbox(
    database: str, edge: Edge, jobs: Jobs, inbox: Inbox
) -> None:
    """The worker of shard 0 hears every callback, and rings for what is not its own."""
    everything: list[Jobs] = []
    for _ in range(12):
        everything.append(Jobs(jobs.session))
        everything[-1].submitted()
    async with (
        running(inbox_process.run, database_url=database, shards=[0, 1, 2, 3]),
        running(inbox_process.run, database_url=database, shards=[4, 5, 6, 7]),
    ):
        await asyncio.gather(
            *(edge.deliver(body(jobs, "processing", n), event_id=f"e{n}") for n in range(12))
        )
        await eventually_async(lambda: jobs.statuses() == ["running"] * 12, timeout=8.0)
