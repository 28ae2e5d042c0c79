"""`aivedio doctor` finds what is wrong, says what to do, and finds nothing where all is well."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from edge.operate.doctor import Finding, Installation, examine
from tests.py.conftest import Connect
from tests.py.support.waiting import eventually_async


async def found(**installation: Any) -> dict[str, Finding]:
    return {one.subject: one async for one in examine(Installation(**installation))}


@asynccontextmanager
async def website() -> AsyncIterator[str]:
    """A gateway as the doctor sees it, a page of somebody else's, and a redirect."""

    async def me(request: Request) -> Response:
        return JSONResponse({}, 401, media_type="application/problem+json")

    async def elsewhere(request: Request) -> Response:
        return RedirectResponse("/", 301)

    async def page(request: Request) -> Response:
        return JSONResponse({})

    routes = [
        Route("/me", me),
        Route("/moved/{path:path}", elsewhere),
        Route("/{path:path}", page),
    ]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_config=None))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve([listening]))
    try:
        await eventually_async(lambda: server.started)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


async def test_an_installation_that_is_well(
    database: str, valkey: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(autocommit=True).execute("select aivedio.upkeep('streams')")
    monkeypatch.setenv("REPLICATE_API_TOKEN", "r8_test")
    monkeypatch.setenv("REPLICATE_WEBHOOK_SECRET", "whsec_dGVzdA==")
    async with website() as url:
        findings = await found(
            database_url=database,
            redis_url=valkey,
            public_url=url,
            callback_url=url,
            most_streams=10,
            proxy_idle_seconds=75.0,
            encryption_at_rest="LUKS",
            local=True,
        )
    # A throw-away server archives nothing, and promises nothing to anybody who rings.
    unlike = {
        "server setting archive_mode",
        "server setting fsync",
        "server setting full_page_writes",
    }
    unlike |= {"server setting synchronous_commit"}
    assert {one for one in findings.values() if one.state != "ok"} == {
        one for one in findings.values() if one.subject in unlike and one.state != "ok"
    }
    assert findings["providers"].detail == "with secrets here: replicate"
    for subject in ("clock", "notifications", "Redis", "callback URL", "public URL", "upkeep"):
        assert findings[subject].state == "ok", findings[subject]
    assert all(one.advice is None for one in findings.values() if one.state == "ok")
    assert all(one.advice for one in findings.values() if one.state != "ok")


async def test_a_database_that_is_away_ends_what_rests_on_it() -> None:
    findings = await found(database_url="postgresql://nobody@127.0.0.1:1/none")
    assert findings["database"].state == "wrong"
    assert "clock" not in findings
    assert findings["Redis"].detail == "not set"


async def test_a_database_that_is_not_migrated_is_told_from_one_that_is_away(
    database: str, connect: Connect
) -> None:
    connect(autocommit=True).execute("drop function aivedio.checkup()")
    findings = await found(database_url=database)
    assert findings["database"].advice == "Run aivedio migrate."


async def test_upkeep_that_does_not_run_and_partitions_that_run_out(
    database: str, connect: Connect
) -> None:
    session = connect(autocommit=True)
    session.execute("update aivedio.stream_checks set at = now() - interval '11 minutes'")
    session.execute("select setval('aivedio.outbox_ids', 200000001)")
    findings = await found(database_url=database)
    assert findings["upkeep"].state == "wrong"
    assert findings["partitions of outbox_events"].state == "wrong"
    assert findings["partitions of task_events"].state == "ok"


async def test_leases_that_end_before_the_work(database: str, connect: Connect) -> None:
    session = connect(autocommit=True)
    session.execute("update aivedio.settings set value = '10' where name = 'submit_lease_s'")
    findings = await found(database_url=database)
    lease = findings["lease of a submit to replicate"]
    assert lease.state == "wrong"
    assert lease.advice is not None
    assert "submit_lease_s" in lease.advice


async def test_alarms_are_findings(database: str, connect: Connect) -> None:
    connect(autocommit=True).execute("select aivedio._raise_alarm('flood', 'replicate', '{}')")
    findings = await found(database_url=database)
    assert findings["alarm flood"].state == "warn"


async def test_a_provider_that_is_half_set_up(
    database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, connect: Connect
) -> None:
    key = tmp_path / "key"
    connect(autocommit=True).execute(
        "select aivedio.rotate_credential('replicate', 'default', %s, 'ops', 'kept in a file')",
        [f"file:{key}"],
    )
    monkeypatch.setenv("REPLICATE_WEBHOOK_SECRET", "whsec_dGVzdA==")
    findings = await found(database_url=database)
    assert findings["secrets of replicate"].detail == f"missing here: file:{key}"
    key.write_text("r8_test")
    findings = await found(database_url=database)
    assert "secrets of replicate" not in findings
    assert findings["providers"].state == "ok"


async def test_addresses_that_lead_elsewhere(database: str) -> None:
    async with website() as url:
        findings = await found(
            database_url=database,
            callback_url=f"{url}/moved",
            public_url=f"{url}/page",
            local=True,
        )
    assert findings["callback URL"].state == "wrong"
    assert findings["public URL"].detail == "something else answers there"
    findings = await found(
        database_url=database, callback_url="http://a.example", public_url="http://a.example"
    )
    assert findings["callback URL"].detail == findings["public URL"].detail == "plain http"


async def test_what_this_machine_or_a_proxy_cannot_bear(database: str) -> None:
    findings = await found(
        database_url=database,
        redis_url="redis://127.0.0.1:1/0",
        bus_endpoints=("127.0.0.1:1",),
        most_streams=2**40,
        proxy_idle_seconds=30.0,
    )
    for subject in ("Redis", "RocketMQ proxy 127.0.0.1:1", "file descriptors", "proxy's idle time"):
        assert findings[subject].state == "wrong", subject
    assert findings["encryption at rest"].state == "warn"
