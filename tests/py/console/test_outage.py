"""The database goes away and comes back: the page stays, and says so meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.py.console.running import bearer, running
from tests.py.gateway.proxy import proxied
from tests.py.support.clusters import Cluster
from tests.py.support.waiting import eventually_async


async def test_the_page_outlives_its_database(
    database: str, cluster: Cluster, free_port: Callable[[], int]
) -> None:
    port = free_port()
    name = conninfo_to_dict(database)["dbname"]
    conninfo = make_conninfo(host="127.0.0.1", port=port, user="postgres", dbname=name)
    async with proxied(port, cluster.port) as proxy:
        await proxy.cut()
        async with running(conninfo, free_port()) as console:

            async def status() -> int:
                answer = await console.client.get("/api/pipeline", headers=bearer("read"))
                if answer.status_code == 503:
                    assert answer.json()["code"] == "unavailable"
                    assert int(answer.headers["retry-after"]) > 0
                return answer.status_code

            async def answers(wanted: int) -> None:
                async def check() -> bool:
                    return await status() == wanted

                await eventually_async(check, 20.0)

            assert await status() == 503
            assert not console.ready.is_set()
            await proxy.mend()
            await answers(200)
            await eventually_async(console.ready.is_set, 10.0)
            await proxy.cut()
            await answers(503)
            assert (await console.client.get("/")).status_code == 200
            act = await console.act("requeue_outbox", message=1, reason="a test")
            assert act.status_code == 503
            await proxy.mend()
            await answers(200)
