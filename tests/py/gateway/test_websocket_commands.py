"""What a client may say over a WebSocket: go on elsewhere, cancel a task; each once per id."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from edge.buckets import Rate
from edge.gateway import commands
from tests.py.gateway.conftest import Gateway, Person, StartGateway, stream_token
from tests.py.gateway.sockets import Socket, talking


async def test_subscribing_goes_on_after_a_cursor(gateway: Gateway, person: Person) -> None:
    first = await gateway.create_task(person)
    second = await gateway.create_task(person)
    async with talking(gateway, person) as socket:
        assert (await socket.next())["cursor"] == second["event_id"]
        reply = await socket.ask(type="subscribe", request_id="a", after=first["event_id"])
        assert reply == {"type": "reply", "request_id": "a", "ok": True}
        assert (await socket.next())["type"] == "ready"
        await socket.until(second["event_id"])
        assert [event["event_id"] for event in socket.events] == [second["event_id"]]

        # The same request again has no second effect: the next that comes is the marker's reply.
        again = await socket.ask(type="subscribe", request_id="a", after=first["event_id"])
        assert again == reply
        await socket.ask(type="subscribe", request_id="marker", after=second["event_id"])
        assert (await socket.next())["type"] == "ready"
        assert len(socket.events) == 1

        other = await socket.ask(type="subscribe", request_id="a", after=0)
        assert (other["ok"], other["status"], other["code"]) == (False, 409, "key_reused")
        await socket.ask(type="subscribe", request_id="now", after=None)
        assert await socket.next() == {
            "type": "ready",
            "cursor": second["event_id"],
            "retry_ms": pytest.approx(2500, abs=1500),
        }
        ahead = second["event_id"] + 1000
        await socket.ask(type="subscribe", request_id="ahead", after=ahead)
        assert (await socket.next())["reason"] == "ahead"


async def test_what_cannot_be_understood_is_said(gateway: Gateway, person: Person) -> None:
    async with talking(gateway, person) as socket:
        await socket.next()
        for said, code in (
            ("", "bad_request"),
            ("{", "bad_request"),
            ("[]", "bad_request"),
            ('"x"', "bad_request"),
            ("{}", "bad_request"),
            ('{"type":"subscribe"}', "bad_request"),
            ('{"type":"subscribe","request_id":7}', "bad_request"),
            ('{"type":"subscribe","request_id":""}', "bad_request"),
            ('{"type":"subscribe","request_id":"a b"}', "bad_request"),
            ('{"type":"subscribe","request_id":"' + "x" * 65 + '"}', "bad_request"),
            ('{"type":"eat","request_id":"r"}', "bad_request"),
            ('{"request_id":"r"}', "bad_request"),
            ('{"type":"subscribe","request_id":"r","after":"1"}', "bad_cursor"),
            ('{"type":"subscribe","request_id":"r","after":-1}', "bad_cursor"),
            ('{"type":"subscribe","request_id":"r","after":true}', "bad_cursor"),
            ('{"type":"subscribe","request_id":"r","after":9007199254740992}', "bad_cursor"),
            ('{"type":"cancel","request_id":"r"}', "not_found"),
            ('{"type":"cancel","request_id":"r","task_id":"x"}', "not_found"),
            ('{"type":"cancel","request_id":"r","task_id":7}', "not_found"),
            ("[" * 2000, "bad_request"),
            ('{"type":"cancel\\u0000","request_id":"r"}', "bad_request"),
        ):
            await socket.connection.send(said)
            reply = await socket.next()
            assert (reply["type"], reply["ok"], reply["code"]) == ("reply", False, code), said
            assert reply["request_id"] in (None, "r")


async def cancel(socket: Socket, task: object, request_id: str = "c") -> str:
    reply = await socket.ask(type="cancel", request_id=request_id, task_id=str(task))
    assert reply["request_id"] == request_id
    if reply["ok"]:
        assert reply["task"]["id"] == str(task)
        return str(reply["verdict"])
    return str(reply["code"])


async def test_a_cancellation_is_made_once(gateway: Gateway, person: Person) -> None:
    """Repeated on the same connection, on another one, and at the same moment."""
    task = (await gateway.create_task(person))["task_id"]
    async with talking(gateway, person) as socket, talking(gateway, person) as other:
        request = json.dumps({"type": "cancel", "request_id": "c", "task_id": str(task)})
        await socket.connection.send(request)
        assert await cancel(socket, task) == "applied"
        await other.connection.send(request)
        assert await cancel(other, task) in ("duplicate", "refused")
        assert await cancel(socket, task) == "applied"
        assert await cancel(socket, task, "again") in ("duplicate", "refused")
        events = await gateway.sql(
            "select count(*) from aivedio.task_events where task_id = %s", task
        )
        assert events == [(2,)]
        while len(socket.events) < 1:
            await socket.next()
        assert socket.events[0]["payload"]["status"] == "canceled"


async def test_who_may_not_cancel(gateway: Gateway, person: Person) -> None:
    """A4: nor learn what there is."""
    (project,) = person.projects
    task = (await gateway.create_task(person))["task_id"]
    stranger = Person(projects=(uuid.uuid4(),))
    viewer = Person(projects=(), tenant=person.tenant)
    await gateway.sql(
        "select aivedio.add_member(%s, %s, %s, 'viewer')", person.tenant, project, viewer.user
    )
    seeing = Person(projects=(project,), tenant=viewer.tenant, user=viewer.user)
    token = (await stream_token(gateway, person))["token"]
    async with (
        talking(gateway, stranger) as foreign,
        talking(gateway, seeing, headers=viewer.bearer()) as reading,
        talking(gateway, person, f"?token={token}", headers={}) as one_time,
        talking(gateway, person) as revoked,
    ):
        assert await cancel(foreign, task) == "not_found"
        assert await cancel(foreign, uuid.uuid4(), "d") == "not_found"
        assert await cancel(reading, task) == "forbidden"
        assert await cancel(one_time, task) == "forbidden"
        await gateway.sql(
            """insert into aivedio.access_revocations (kind, subject, revoked_at, until)
               values ('session', %s, now(), now() + interval '1 day')""",
            person.session,
        )
        assert await cancel(revoked, task) == "not_found"
    (status,) = await gateway.sql("select status from aivedio.generation_tasks where id = %s", task)
    assert status == ("created",)


async def test_who_asks_too_often_is_told_to_wait(
    start_gateway: StartGateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all connections of a user; others do not feel it."""
    monkeypatch.setattr(commands, "RATE", Rate(per_second=0.01, burst=3))
    gateway = await start_gateway()
    other = Person(projects=(uuid.uuid4(),))
    async with (
        talking(gateway, person) as one,
        talking(gateway, person) as two,
        talking(gateway, other) as third,
    ):
        for number, socket in enumerate((one, two, one)):
            assert (await socket.ask(type="subscribe", request_id=f"{number}"))["ok"]
        for socket in (one, two):
            reply = await socket.ask(type="subscribe", request_id="more")
            assert (reply["status"], reply["code"]) == (429, "too_many_requests")
            assert reply["retry_after"] > 0
        assert (await third.ask(type="subscribe", request_id="more"))["ok"]


async def test_a_command_that_failed_in_passing_may_be_repeated(
    start_gateway: StartGateway, person: Person
) -> None:
    gateway = await start_gateway()
    task = (await gateway.create_task(person))["task_id"]
    async with talking(gateway, person) as socket:
        await gateway.sql(
            "alter function aivedio.request_cancel rename to request_cancel_elsewhere"
        )
        assert await cancel(socket, task) == "unavailable"
        await gateway.sql(
            "alter function aivedio.request_cancel_elsewhere rename to request_cancel"
        )
        async with asyncio.timeout(20):
            while (verdict := await cancel(socket, task)) == "unavailable":
                pass
        assert verdict == "applied"


async def test_only_so_much_is_remembered(
    gateway: Gateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "REMEMBERED", 2)
    async with talking(gateway, person) as socket:
        for request_id in ("a", "b", "c"):
            assert (await socket.ask(type="subscribe", request_id=request_id, after=0))["ok"]
        assert not (await socket.ask(type="subscribe", request_id="c", after=1))["ok"]
        assert (await socket.ask(type="subscribe", request_id="a", after=1))["ok"]
