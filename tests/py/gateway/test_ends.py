"""What ends an open stream, and what keeps a newcomer out: revocation, expiry, caps."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import AsyncExitStack
from typing import Any

import pytest

from edge.buckets import Rate
from edge.gateway import app, hubs, streams
from edge.gateway.places import Caps, Places
from edge.gateway.store import Grant
from tests.py.gateway.conftest import Gateway, Person, Reader, StartGateway, stream_token


@pytest.mark.parametrize("kind", ["session", "user", "project", "tenant"])
async def test_a_revocation_ends_open_streams_at_once(
    gateway: Gateway, person: Person, kind: str
) -> None:
    """A1: by the bell; and the same credential opens nothing afterwards."""
    (project,) = person.projects
    bystander = Person(projects=(uuid.uuid4(),))
    subject = {
        "session": person.session,
        "user": str(person.user),
        "project": str(project),
        "tenant": str(person.tenant),
    }[kind]
    async with (
        gateway.follow(project, person.bearer()) as reader,
        gateway.follow(bystander.projects[0], bystander.bearer()) as other,
    ):
        await reader.next()
        await other.next()
        await gateway.sql("select aivedio.revoke_access(%s, %s, 'test', 'because')", kind, subject)
        await ends(reader, within=3.0)
        made = await gateway.create_task(bystander)
        await other.until(made["event_id"])
    answer = await gateway.client.get(
        f"/projects/{project}/events", headers=person.bearer(iat=int(time.time()) - 60)
    )
    assert answer.status_code == 404
    refused = await gateway.client.get(
        f"/projects/{project}/tasks", headers=person.bearer(iat=int(time.time()) - 60)
    )
    assert refused.status_code == 404


async def ends(reader: Reader, within: float) -> str | None:
    """Wait until the stream ends in good order; return its last event."""
    last = None
    try:
        while True:
            last = (await reader.next(within)).event
    except StopAsyncIteration:
        return last


async def test_a_revocation_without_a_bell_ends_streams_within_a_heartbeat(
    start_gateway: StartGateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "RECHECK_S", 1.0)
    gateway = await start_gateway()
    async with gateway.follow(person.projects[0], person.bearer()) as reader:
        await reader.next()
        await gateway.sql(
            """insert into aivedio.access_revocations (kind, subject, revoked_at, until)
               values ('user', %s, now(), now() + interval '1 day')""",
            str(person.user),
        )
        await ends(reader, within=5.0)


async def test_a_removed_member_loses_the_stream(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "RECHECK_S", 1.0)
    gateway = await start_gateway()
    project, person = uuid.uuid4(), Person(projects=())
    await gateway.sql("select aivedio.add_member(%s, %s, %s)", person.tenant, project, person.user)
    async with gateway.follow(project, person.bearer()) as reader:
        await reader.next()
        await gateway.sql("delete from aivedio.project_members where user_id = %s", person.user)
        await ends(reader, within=5.0)


async def test_an_expired_credential_ends_the_stream_with_renew(
    gateway: Gateway, person: Person
) -> None:
    """A2: closed at expiry, with an event that means "come back with a new token"."""
    now = int(time.time())
    async with gateway.follow(person.projects[0], person.bearer(exp=now + 2)) as reader:
        await reader.next()
        assert await ends(reader, within=5.0) == "renew"
    token = await stream_token(gateway, person, exp=int(time.time()) + 2)
    async with gateway.follow(
        person.projects[0], {"authorization": f"Stream {token['token']}"}
    ) as reader:
        await reader.next()
        assert await ends(reader, within=5.0) == "renew"


async def test_a_revocation_while_a_stream_begins_ends_it_at_once(
    start_gateway: StartGateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was permitted before, and enters after the recheck that the bell caused."""
    rechecked = asyncio.Event()
    end_the_lost, opened = streams.Streams._end_the_lost, hubs.Hubs.opened

    async def end_and_tell(self: streams.Streams) -> None:
        await end_the_lost(self)
        rechecked.set()

    async def open_late(self: hubs.Hubs, *arguments: Any) -> Any:
        rechecked.clear()
        await gateway.sql("select aivedio.revoke_access('user', %s, 'x', 'y')", str(person.user))
        await rechecked.wait()
        return await opened(self, *arguments)

    gateway = await start_gateway()
    monkeypatch.setattr(streams.Streams, "_end_the_lost", end_and_tell)
    monkeypatch.setattr(hubs.Hubs, "opened", open_late)
    async with gateway.follow(person.projects[0], person.bearer()) as reader:
        await ends(reader, within=5.0)


async def test_newcomers_over_the_cap_wait_and_nobody_is_sent_away(
    start_gateway: StartGateway, person: Person
) -> None:
    gateway = await start_gateway(caps=Caps(process=3, user=2))
    (project,) = person.projects
    second = Person(projects=person.projects, tenant=person.tenant)

    async def refused(who: Person) -> str:
        answer = await gateway.client.get(f"/projects/{project}/events", headers=who.bearer())
        assert int(answer.headers["retry-after"]) > 0
        return f"{answer.status_code} {answer.json()['code']}"

    async with (
        gateway.follow(project, person.bearer()) as one,
        gateway.follow(project, person.bearer()) as two,
    ):
        assert await refused(person) == "429 too_many_streams"
        async with gateway.follow(project, second.bearer()) as three:
            assert await refused(second) == "503 full"
            for reader in (one, two, three):
                assert (await reader.next()).event == "ready"
        async with asyncio.timeout(5):
            while (
                await gateway.client.head(f"/projects/{project}/events", headers=second.bearer())
            ).status_code == 503:
                pass
        made = await gateway.create_task(person)
        for reader in (one, two):
            await reader.until(made["event_id"])


async def test_each_cap_counts_its_own(start_gateway: StartGateway) -> None:
    caps = Caps(process=6, tenant=4, user=3, device=2)
    gateway = await start_gateway(caps=caps)
    project, tenant = uuid.uuid4(), uuid.uuid4()
    one = Person((project,), tenant=tenant)
    elsewhere = Person((project,), tenant=tenant, user=one.user)
    colleague = Person((project,), tenant=tenant)
    stranger = Person((uuid.uuid4(),))

    async def refused(who: Person) -> str:
        path = f"/projects/{who.projects[0]}/events"
        answer = await gateway.client.get(path, headers=who.bearer())
        assert int(answer.headers["retry-after"]) > 0
        return f"{answer.status_code} {answer.json()['code']}"

    readers: list[Reader] = []
    async with AsyncExitStack() as opened:

        async def follow(who: Person) -> None:
            stream = gateway.follow(who.projects[0], who.bearer())
            readers.append(await opened.enter_async_context(stream))
            assert (await readers[-1].next()).event == "ready"

        for who in (one, one):
            await follow(who)
        assert await refused(one) == "429 too_many_streams"
        await follow(elsewhere)
        assert await refused(elsewhere) == "429 too_many_streams"
        await follow(colleague)
        assert await refused(colleague) == "429 too_many_streams"
        for who in (stranger, stranger):
            await follow(who)
        assert await refused(Person((uuid.uuid4(),))) == "503 full"


def test_places_are_all_given_back() -> None:
    grants = [
        Grant(uuid.UUID(int=tenant), uuid.uuid4(), uuid.UUID(int=user), f"{device}", 0, True)
        for tenant in range(2)
        for user in range(3)
        for device in range(2)
    ]
    places = Places(Caps())
    for grant in grants:
        places.take(grant)
    for grant in grants:
        places.give_back(grant)
    assert (places._count, dict(places._taken)) == (0, {})


async def test_newcomers_who_come_too_quickly_wait(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One user too often, or everybody together; streams and tokens and login links."""
    monkeypatch.setattr(app, "LOGINS", Rate(0.01, 2))
    monkeypatch.setattr(app, "TOKENS", Rate(0.01, 2))
    gateway = await start_gateway(
        caps=Caps(process_connects=Rate(0.01, 3), user_connects=Rate(0.01, 2))
    )

    async def comes(who: Person, path: str = "events") -> str:
        url = f"/projects/{who.projects[0]}/{path}"
        method = "POST" if path == "stream-tokens" else "GET"
        async with gateway.client.stream(method, url, headers=who.bearer()) as answer:
            if answer.status_code < 400:
                return str(answer.status_code)
            assert int(answer.headers["retry-after"]) > 0
            return f"{answer.status_code} {json.loads(await answer.aread())['code']}"

    one, two, three = (Person((uuid.uuid4(),)) for _ in range(3))
    assert [await comes(one) for _ in range(3)] == ["200", "200", "429 too_many_requests"]
    assert [await comes(two), await comes(three)] == ["200", "503 full"]
    assert [await comes(one, "stream-tokens") for _ in range(3)] == [
        *("201", "201", "429 too_many_requests")
    ]
    assert await comes(two, "stream-tokens") == "201"
    tried = [(await gateway.client.get("/login?token=" + "x" * 32)).status_code for _ in range(3)]
    assert tried == [401, 401, 429]
