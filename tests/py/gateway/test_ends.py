"""What ends an open stream, and what keeps a newcomer out: revocation, expiry, caps."""

from __future__ import annotations

import asyncio
import time
import uuid

import pytest

from edge.gateway import streams
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


async def test_newcomers_over_the_cap_wait_and_nobody_is_sent_away(
    start_gateway: StartGateway, person: Person
) -> None:
    gateway = await start_gateway(most_streams=3, most_streams_per_user=2)
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
