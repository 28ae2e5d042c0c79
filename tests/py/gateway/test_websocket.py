"""The stream over a WebSocket: the same as over HTTP, and what only a WebSocket has."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from edge.gateway import streams
from edge.gateway.places import Caps
from tests.py.gateway.conftest import Gateway, Person, StartGateway, stream_token
from tests.py.gateway.sockets import KEY, Socket, frame_from, handshake, talking
from tests.py.gateway.test_access import ORIGIN, cookie
from tests.py.gateway.test_stream import BURST, PROGRESS_FUNCTION, nothing_open, open_streams, raw
from tests.py.gateway.test_websocket_codec import client_frame


async def test_both_languages_say_the_same(gateway: Gateway, person: Person) -> None:
    """Replayed and live: the same events in the same order, each naming the one before."""
    (project,) = person.projects
    await gateway.create_task(person)
    replayed = await gateway.create_task(person)
    async with (
        talking(gateway, person, "?after=0") as socket,
        gateway.follow(project, person.bearer(), cursor=0) as reader,
    ):
        ready = await socket.next()
        assert (ready["type"], ready["cursor"]) == ("ready", 0)
        assert 500 <= ready["retry_ms"] <= 10_000
        await socket.until(replayed["event_id"])
        live = await gateway.create_task(person)
        await gateway.publish(live["event_id"])
        await socket.until(live["event_id"])
        told = []
        while reader.cursor != live["event_id"]:
            event = await reader.next()
            if event.event == "task.status":
                told.append((int(event.id), json.loads(event.data)))
        assert [data for _, data in told] == [
            {
                "task_id": event["task_id"],
                "task_version": event["task_version"],
                "prev": event["prev"],
                **event["payload"],
            }
            for event in socket.events
        ]
        assert [number for number, _ in told] == [event["event_id"] for event in socket.events]
        assert list(socket.events[0]) == [
            *("type", "event_id", "task_id", "task_version", "payload", "prev")
        ]
    await nothing_open()


async def test_a_cursor_that_cannot_be_continued_is_reset(gateway: Gateway, person: Person) -> None:
    made = await gateway.create_task(person)
    async with talking(gateway, person, f"?after={made['event_id'] + 7}") as socket:
        said = await socket.next()
    assert (said["type"], said["reason"], said["cursor"]) == ("reset", "ahead", made["event_id"])


REFUSALS: list[tuple[int, list[bytes]]] = [
    (1002, [client_frame(1, b"x", mask=None)]),
    (1002, [client_frame(1, b"x", reserved=4)]),
    (1002, [client_frame(3, b"")]),
    (1002, [client_frame(11, b"")]),
    (1002, [client_frame(9, b"x" * 126)]),
    (1002, [client_frame(9, b"", final=False)]),
    (1002, [client_frame(8, b"", final=False)]),
    (1002, [client_frame(0, b"x")]),
    (1002, [client_frame(1, b"x", final=False), client_frame(1, b"y")]),
    (1002, [client_frame(8, b"\x03")]),
    (1002, [client_frame(8, (1005).to_bytes(2))]),
    (1002, [client_frame(8, (999).to_bytes(2))]),
    (1007, [client_frame(8, b"\x03\xe8\xff")]),
    (1003, [client_frame(2, b"x")]),
    (1007, [client_frame(1, b"\xff")]),
    (1007, [client_frame(1, b"\xf0\x9f", final=False), client_frame(0, b"\x98")]),
    (1009, [client_frame(1, b"x" * 4097)]),
    (1009, [client_frame(1, b"x" * 4000, final=False), client_frame(0, b"x" * 97)]),
    (1009, [client_frame(1, b"x" * 70_000)]),
    (1008, [client_frame(1, b"", final=False), client_frame(0, b"", final=False) * 1500]),
    (1008, [client_frame(9, b"") * 1500]),
]


async def test_who_breaks_the_protocol_is_told_how(gateway: Gateway, person: Person) -> None:
    """G10: and nobody else is disturbed."""
    async with talking(gateway, person) as bystander:
        await bystander.next()
        for code, frames in REFUSALS:
            async with (
                asyncio.timeout(10),
                raw(gateway, handshake(person.projects[0], person)) as (reader, writer),
            ):
                await reader.readuntil(b"\r\n\r\n")
                for frame in frames:
                    writer.write(frame)
                opcode = 0
                while opcode != 8:
                    opcode, payload = await frame_from(reader)
                assert int.from_bytes(payload[:2]) == code, (frames, payload)
                assert await reader.read() == b"", "after its close frame it says nothing"
        made = await gateway.create_task(person)
        await bystander.until(made["event_id"])
    await nothing_open()


async def test_what_the_protocol_allows_is_answered(gateway: Gateway, person: Person) -> None:
    """Fragments, control frames between them, a byte at a time; and a close in good order."""
    request = b'{"type":"subscribe","request_id":"r","after":0}'
    pieces = [
        client_frame(1, request[:9], final=False),
        client_frame(9, b"in between"),
        client_frame(0, b"", final=False),
        client_frame(10, b"unasked"),
        client_frame(0, request[9:]),
        client_frame(9, b"x" * 125),
        client_frame(8, (1000).to_bytes(2) + b"bye"),
    ]
    async with (
        asyncio.timeout(20),
        raw(gateway, handshake(person.projects[0], person)) as (reader, writer),
    ):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
        assert b"extensions" not in head.lower()
        for byte in b"".join(pieces):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        said = [await frame_from(reader) for _ in range(6)]
        assert await reader.read() == b""
    kinds = [json.loads(text)["type"] if opcode == 1 else opcode for opcode, text in said]
    assert kinds == ["ready", 10, "reply", "ready", 10, 8]
    assert said[1][1] == b"in between"
    assert said[4][1] == b"x" * 125
    assert said[5][1] == (1000).to_bytes(2)
    await nothing_open()


async def test_a_handshake_that_is_refused(start_gateway: StartGateway, person: Person) -> None:
    """By HTTP, as any request; and a plain request tells a page what its handshake would get."""
    gateway = await start_gateway(caps=Caps(user=1))
    (project,) = person.projects
    upgrade = {
        "connection": "keep-alive, Upgrade",
        "upgrade": "WebSocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": KEY,
    }

    async def answer(*target: uuid.UUID, **headers: str) -> str:
        path = f"/projects/{[project, *target][-1]}/ws"
        got = await gateway.client.get(path, headers={**person.bearer(), **headers})
        return f"{got.status_code} {got.json()['code']}"

    assert await answer() == "426 upgrade_required"
    assert await answer(uuid.uuid4()) == "404 not_found"
    assert await answer(uuid.uuid4(), **upgrade) == "404 not_found"
    assert await answer(authorization="Bearer x") == "401 unauthenticated"
    assert await answer(**{**upgrade, "authorization": "Bearer x"}) == "401 unauthenticated"
    assert await answer(**upgrade | {"sec-websocket-version": "8"}) == "426 upgrade_required"
    assert await answer(**{**upgrade, "sec-websocket-key": "x"}) == "400 bad_request"
    assert await answer(**{**upgrade, "last-event-id": "x"}) == "400 bad_cursor"
    assert await answer(upgrade="h2c", connection="upgrade") == "426 upgrade_required"
    for method in ("HEAD", "POST"):
        got = await gateway.client.request(
            method, f"/projects/{project}/ws", headers=person.bearer()
        )
        assert got.status_code == 405
    async with talking(gateway, person) as socket:
        await socket.next()
        assert await answer() == "429 too_many_streams"
        with pytest.raises(InvalidStatus) as refused:
            async with talking(gateway, person):
                pass
        assert refused.value.response.status_code == 429
        assert int(refused.value.response.headers["retry-after"]) > 0
    await nothing_open()


async def test_a_socket_by_cookie_is_for_our_own_pages_only(
    start_gateway: StartGateway, person: Person
) -> None:
    """A page of any site may open one, and a browser then adds our cookie by itself."""
    gateway = await start_gateway(public_url=ORIGIN)
    for origin in ("https://evil.test", "null", ORIGIN + ".evil.test", "http://aivedio.test", None):
        with pytest.raises(InvalidStatus) as refused:
            async with talking(gateway, person, headers=cookie(person), origin=origin):
                pass
        assert refused.value.response.status_code == 403
    async with talking(gateway, person, headers=cookie(person), origin=ORIGIN) as socket:
        assert (await socket.next())["type"] == "ready"
    token = (await stream_token(gateway, person))["token"]
    query = f"?token={token}"
    async with talking(gateway, person, query, headers={}, origin="https://app.test") as socket:
        assert (await socket.next())["type"] == "ready"
    with pytest.raises(InvalidStatus) as used:
        async with talking(gateway, person, query, headers={}):
            pass
    assert used.value.response.status_code == 401


async def closed(socket: Socket) -> tuple[int, str]:
    """Wait for the server's close frame; return its code and reason."""
    with pytest.raises(ConnectionClosed) as ended:
        while True:
            await socket.next()
    received = ended.value.rcvd
    assert received is not None
    return received.code, received.reason


async def test_a_close_code_says_what_to_do(start_gateway: StartGateway) -> None:
    """A1, A2, G14: renew, stay away, come back later."""
    gateway = await start_gateway(drain_seconds=0.2)
    people = [Person(projects=(uuid.uuid4(),)) for _ in range(3)]
    expiring, revoked, staying = people
    soon = expiring.bearer(exp=int(time.time()) + 2)
    async with (
        talking(gateway, expiring, headers=soon) as first,
        talking(gateway, revoked) as second,
        talking(gateway, staying) as third,
    ):
        for socket in (first, second, third):
            assert (await socket.next())["type"] == "ready"
        await gateway.sql(
            "select aivedio.revoke_access('user', %s, 'test', 'because')", str(revoked.user)
        )
        assert await closed(second) == (4403, "revoked")
        assert await closed(first) == (4401, "renew")
        gateway.stopping.set()
        code, reason = await closed(third)
        assert code == 1012
        assert 0 < int(reason) < 10_000


async def test_who_answers_no_ping_is_cut_off(
    start_gateway: StartGateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1, G10, G13: a heartbeat that a page sees, a ping that its browser answers by itself."""
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.4)
    gateway = await start_gateway()
    (project,) = person.projects
    async with (
        asyncio.timeout(20),
        talking(gateway, person) as alive,
        raw(gateway, handshake(project, person)) as (silent, _),
        raw(gateway, handshake(project, person)) as (slow, slow_writer),
    ):
        await alive.next()
        told, code = await asyncio.gather(broke_off(silent), refused(slow, slow_writer))
        assert told == [9, "ping"]
        assert code == 1008
        for _ in range(3):
            said = await alive.next()
            assert said["type"] == "ping"
            assert abs(said["time"] - time.time()) < 30


async def refused(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Begin a message and answer pings only, till the server has had enough; return its code."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(client_frame(1, b"begun", final=False))
    while True:
        opcode, payload = await frame_from(reader)
        if opcode == 8:
            return int.from_bytes(payload[:2])
        if opcode == 9:
            writer.write(client_frame(10, payload))


async def broke_off(reader: asyncio.StreamReader) -> list[Any]:
    """Read to the end without answering; return what came after `ready`."""
    said: list[Any] = []
    await reader.readuntil(b"\r\n\r\n")
    try:
        while True:
            opcode, payload = await frame_from(reader)
            said.append(json.loads(payload)["type"] if opcode == 1 else opcode)
    except (asyncio.IncompleteReadError, ConnectionError):
        return said[1:]


async def test_a_client_that_reads_nothing_costs_little_and_loses_nothing(
    gateway: Gateway, person: Person
) -> None:
    """G5, G8: bounded as over HTTP, also against one that asks and asks without listening."""
    (project,) = person.projects
    task = await gateway.create_task(person)
    await gateway.sql(PROGRESS_FUNCTION)
    async with (
        asyncio.timeout(60),
        raw(gateway, handshake(project, person), receive_buffer=4096) as (slow, writer),
        talking(gateway, person, "?after=0") as quick,
    ):
        await slow.readuntil(b"\r\n\r\n")
        # More than the ring holds at once, so that the slow one is behind for certain.
        for _ in range(4):
            ids = [row[0] for row in await gateway.sql(BURST, task["task_id"], 400)]
            await gateway.publish(*ids)
            await quick.until(ids[-1])
        writer.write(client_frame(9, b"x" * 125) * 400)
        sizes = [one._transport.get_write_buffer_size() for one in open_streams() if one._transport]
        assert max(sizes) < 300_000
        assert len(quick.events) == 1601
    async with talking(gateway, person, f"?after={task['event_id']}") as again:
        await again.until(ids[-1])


async def test_a_client_that_is_gone_is_forgotten(gateway: Gateway, person: Person) -> None:
    """G1, G4, G7: in good order, in the middle of a frame, or at once."""
    (project,) = person.projects
    for ending in (b"", client_frame(1, b"half")[:5], client_frame(8, b"")):
        async with raw(gateway, handshake(project, person)) as (reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ending)
            await frame_from(reader)
        await nothing_open()
