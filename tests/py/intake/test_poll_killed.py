"""The poll process is killed: what its provider had answered is asked again, and no more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import psycopg

from edge.intake import poll
from tests.py.intake.conftest import running
from tests.py.intake.jobs import Jobs
from tests.py.intake.server import Request, Writer, answer, serving
from tests.py.support.clusters import Cluster
from tests.py.support.waiting import eventually_async


@contextmanager
def poll_process(database: str, cluster: Cluster) -> Iterator[subprocess.Popen[bytes]]:
    """Run the poll process as a service manager would."""
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    environment = {
        **os.environ,
        "AIVEDIO_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{cluster.port}/{name}",
        "AIVEDIO_ADMIN_PORT": "0",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "edge.cli.app", "poll"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def settles_that_wait(jobs: Jobs) -> int:
    row = jobs.session.execute(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and wait_event_type = 'Lock' and query ~ 'settle_poll'"
    ).fetchone()
    assert row is not None
    return int(row[0])


async def test_killed_between_the_answer_and_its_settlement(
    database: str, cluster: Cluster, jobs: Jobs
) -> None:
    """P11: the answer is lost with the process; the lease runs out, and another asks again."""

    async def finished(request: Request, writer: Writer) -> None:
        job = request.line.split(" ")[1].rpartition("/")[2]
        body = {"id": job, "status": "succeeded", "output": "https://x.example/o.mp4"}
        await answer(orjson.dumps(body))(request, writer)

    async with serving(finished) as server:
        jobs.provider_at(server.url)
        jobs.session.execute("update aivedio.settings set value = '2' where name = 'poll_lease_s'")
        jobs.submitted(3)
        with psycopg.connect(database) as holder:
            holder.execute("select 1 from aivedio.project_streams for update")
            with poll_process(database, cluster) as process:
                await eventually_async(
                    lambda: len(server.requests) == 3 and settles_that_wait(jobs) > 0, timeout=30.0
                )
                process.send_signal(signal.SIGKILL)
                process.wait()
            # What waited for the lock dies with its client, and must not settle afterwards.
            jobs.session.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'aivedio-poll' and datname = current_database()"
            )
            await eventually_async(lambda: settles_that_wait(jobs) == 0)
            assert jobs.statuses() == ["submitted"] * 3

        async with running(poll.run, database_url=database, worker="another"):
            await eventually_async(
                lambda: jobs.statuses() == ["provider_succeeded"] * 3, timeout=30.0
            )
        asked = [request.line for request in server.requests]
    assert len(asked) == 6
    assert sorted(asked[:3]) == sorted(asked[3:])
    assert all(line.startswith("GET ") for line in asked)
    assert jobs.attempts("attempt_no, submit_tries, poll_count") == [(1, 1, 1)] * 3
