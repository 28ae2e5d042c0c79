"""A cluster that asks who we are is told on both protocols; a wrong answer is an outage."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from uuid import uuid4

import pytest

from deploy.rocketmq.build import found as installed
from deploy.rocketmq.servers import PORTS, Ports, Servers
from relay import rocketmq
from relay.bus import Fate, Message
from relay.buses import Rocketmq
from relay.rocketmq_topics import Admin, CannotCreate
from tests.py.support.clusters import Run
from tests.py.support.ports import free_ports
from tests.py.support.waiting import eventually_async

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("rocketmq")]

AUTH = "org.apache.rocketmq.auth.authentication.provider."
USER, PASSWORD = "relay", "only for this test"
INNER = json.dumps({"accessKey": USER, "secretKey": PASSWORD})


@pytest.fixture
def servers(run: Run) -> Iterator[Servers]:
    servers = Servers(
        installed(), run.folder / "rocketmq-closed", Ports.from_base(free_ports(PORTS))
    )
    servers.prepare()
    with (servers.folder / "conf" / "broker.conf").open("a") as conf:
        conf.write(
            "authenticationEnabled=true\n"
            f"authenticationProvider={AUTH}DefaultAuthenticationProvider\n"
            f"authenticationMetadataProvider={AUTH}LocalAuthenticationMetadataProvider\n"
            f"initAuthenticationUser={json.dumps({'username': USER, 'password': PASSWORD})}\n"
            f"innerClientAuthenticationCredentials={INNER}\n"
        )
    proxy = servers.folder / "conf" / "rmq-proxy.json"
    known = json.loads(proxy.read_text())
    known |= {
        "authenticationEnabled": True,
        "authenticationProvider": f"{AUTH}DefaultAuthenticationProvider",
        "authenticationMetadataProvider": (
            "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider"
        ),
        "innerClientAuthenticationCredentials": INNER,
    }
    proxy.write_text(json.dumps(known))
    keepers = []
    for name, command in (("names", servers.name_server()), ("broker", servers.broker())):
        folder = run.folder / f"rocketmq-closed-{name}"
        folder.mkdir(mode=0o700)
        keepers.append(run.keep(folder, signal.SIGKILL, command, user=""))
        assert servers.await_name_server(lambda: True)
    assert servers.await_broker(lambda: True)
    yield servers
    for keeper in keepers:
        run.stop(keeper)


async def test_only_the_right_key_opens_a_closed_cluster(servers: Servers) -> None:
    names = [servers.ports.name_servers]
    groups = {"aivedio_dispatcher": True}
    for user, password in ((None, None), (USER, "a wrong one")):
        with pytest.raises(CannotCreate, match="refuses"):
            Admin(names, user, password).create("aivedio_events", groups)
    Admin(names, USER, PASSWORD).create("aivedio_events", groups)

    async def fate(user: str | None, password: str | None) -> tuple[Fate, str | None]:
        where = Rocketmq([servers.ports.endpoints], "aivedio", user, password)
        async with rocketmq.publisher(where) as bus:
            (receipt,) = await bus.publish([Message(uuid4(), "running", {"event_id": 1})])
        return receipt.fate, receipt.error

    async def sent() -> bool:
        return (await fate(USER, PASSWORD))[0] is Fate.SENT

    check = sent
    await eventually_async(check, 20)
    assert await fate(None, None) == (Fate.FAILED, "UNAUTHORIZED")
    assert await fate(USER, "a wrong one") == (Fate.FAILED, "UNAUTHORIZED")
