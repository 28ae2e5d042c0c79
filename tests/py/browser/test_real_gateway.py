"""
The page's module on a real gateway, a real PostgreSQL and a real Redis, each of which goes away.

After every fault the page ends equal to the database and proves it; and while it may have missed
something it did not say that it had everything.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client import REGISTRY
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from edge.gateway import lookout
from tests.py.browser.chromium import Browser, literal
from tests.py.browser.conftest import QUICK
from tests.py.gateway.conftest import Gateway, Person, StartGateway, start_gateway  # noqa: F401
from tests.py.gateway.proxy import Proxy, proxied
from tests.py.support.clusters import Cluster
from tests.py.support.waiting import eventually_async

CONNECT = """
const module = await import('/static/aivedio.js');
window.seen = [];
window.feed = module.connect({
  project: %s,
  share: false,
  token: async () => window.token,
  timing: %s,
  onStatus: (status) => seen.push(status.proven ? 'proven' : status.state),
});
"""


class Page:
    """A page that follows a person's project, by way of proxies that can be cut."""

    def __init__(self, browser: Browser, gateway: Gateway, person: Person, front: Proxy) -> None:
        self.browser = browser
        self.gateway = gateway
        self.person = person
        self.front = front

    async def open(self) -> None:
        await self.browser.open(f"http://127.0.0.1:{self.front.port}/static/page.css")
        await self.sign(self.person.token())
        timing = {**QUICK, "silence": 40_000, "suspect": 40_000}
        await self.browser.run(CONNECT % (literal(str(self.person.projects[0])), literal(timing)))

    async def sign(self, token: str) -> None:
        await self.browser.run(f"window.token = {literal(token)};")

    async def change(self) -> None:
        """Change something, whatever the gateway notices of it."""
        await self.gateway.create_task(self.person)

    async def equals_the_database(self) -> None:
        """Wait until the page proves that it shows everything, and it does."""

        async def check() -> bool:
            proven, shown = await self.browser.run(
                "return [feed.proven, feed.tasks.map((t) => [t.id, t.status, t.task_version])];"
            )
            held = await self.gateway.sql(
                """select id::text, status, version from aivedio.generation_tasks
                   where project_id = %s order by id desc""",
                self.person.projects[0],
            )
            return bool(proven) and shown == [list(row) for row in held]

        await eventually_async(check, 30.0)

    async def until(self, expression: str) -> Any:
        async def check() -> Any:
            return await self.browser.run(f"return {expression};")

        return await eventually_async(check, 30.0, expression)

    @asynccontextmanager
    async def unproven(self, state: str) -> AsyncIterator[None]:
        """Wait for the page to say that it may miss something; nothing is proven in the block."""
        await self.until(f"!feed.proven && feed.status.state === {literal(state)}")
        await self.browser.run("seen.length = 0;")
        yield
        assert "proven" not in await self.browser.run("return seen;")


@pytest.mark.parametrize("how", ["cut", "freeze"])
async def test_whatever_goes_away_the_page_ends_equal_to_the_database(
    browser: Browser,
    start_gateway: StartGateway,  # noqa: F811
    database: str,
    cluster: Cluster,
    valkey: str,
    free_port: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    person = Person(projects=(uuid.uuid4(),))
    name = conninfo_to_dict(database)["dbname"]
    redis_port, front_port = int(valkey.split(":")[2].split("/")[0]), free_port()
    async with (
        proxied(free_port(), cluster.port) as postgres,
        proxied(free_port(), redis_port) as redis,
    ):
        settings = {
            "database_url": make_conninfo(
                host="127.0.0.1", port=postgres.port, user="postgres", dbname=name
            ),
            "redis_url": f"redis://127.0.0.1:{redis.port}/0",
            "public_url": f"http://127.0.0.1:{front_port}",
        }
        gateway = await start_gateway(**settings)
        gateway.database = database
        monkeypatch.setattr(lookout, "AWAY_S", 1.5)
        async with proxied(front_port, urlsplit(gateway.url).port or 0) as front:
            page = Page(browser, gateway, person, front)
            await page.open()
            await page.equals_the_database()

            await away(redis, how)
            await page.change()
            await page.equals_the_database()
            await redis.mend()

            await away(postgres, how)
            async with page.unproven("interrupted"):
                await page.change()
            await postgres.mend()
            await page.equals_the_database()

            await front.cut()
            async with page.unproven("interrupted"):
                await page.change()
                # Its cursor is older than anything that is kept.
                await gateway.sql("delete from aivedio.task_events")
                await page.change()
            await front.mend()
            await page.equals_the_database()

            # Access that is taken away and given again; then a token that expires.
            await gateway.sql(
                "select aivedio.revoke_access('session', %s, 'test', 'x')", person.session
            )
            async with page.unproven("forbidden"):
                await page.change()
            await gateway.sql("delete from aivedio.access_revocations")
            expired = ended_by("expired")
            await page.sign(person.token(exp=int(time.time()) + 6))
            await page.equals_the_database()
            await page.sign(person.token())
            await eventually_async(lambda: ended_by("expired") > expired, 20.0)
            await page.change()
            await page.equals_the_database()


def ended_by(why: str) -> float:
    """Return how many streams the gateway has ended for a reason."""
    name = "aivedio_gateway_streams_closed_total"
    return REGISTRY.get_sample_value(name, {"why": why}) or 0.0


async def away(server: Proxy, how: str) -> None:
    if how == "cut":
        await server.cut()
    else:
        server.freeze()
