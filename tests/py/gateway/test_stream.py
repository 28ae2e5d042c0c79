"""What a reader of the stream gets, byte by byte and connection by connection."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from edge.gateway import stream, streams, takeover
from tests.py.gateway.conftest import Gateway, Person, StartGateway
from tests.py.support.waiting import eventually_async


@asynccontextmanager
async def raw(
    gateway: Gateway, request: str, *, receive_buffer: int | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Speak HTTP by hand."""
    host, port = gateway.url.removeprefix("http://").split(":")
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=sock, limit=2**16)
    writer.write(request.replace("\n", "\r\n").encode())
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def get(project: uuid.UUID, person: Person, *more: str, version: str = "1.1") -> str:
    lines = [
        f"GET /projects/{project}/events HTTP/{version}",
        "Host: localhost",
        f"Authorization: {person.bearer()['authorization']}",
        *more,
        "",
        "",
    ]
    return "\n".join(lines)


async def test_curl_reads_the_stream(gateway: Gateway, person: Person) -> None:
    (project,) = person.projects
    first = await gateway.create_task(person)
    curl = await asyncio.create_subprocess_exec(
        *("curl", "-sN", "--max-time", "20"),
        *("-H", f"Authorization: {person.bearer()['authorization']}"),
        f"{gateway.url}/projects/{project}/events?after=0",
        stdout=asyncio.subprocess.PIPE,
    )
    assert curl.stdout
    async with asyncio.timeout(10):
        ready = await curl.stdout.readuntil(b"\n\n")
        event = await curl.stdout.readuntil(b"\n\n")
    curl.terminate()
    await curl.wait()
    assert re.fullmatch(rb'retry: \d+\nid: 0\nevent: ready\ndata: \{"cursor":0\}\n\n', ready), ready
    assert event.startswith(b"id: %d\nevent: task.status\ndata: {" % first["event_id"])
    assert event.endswith(b'"prev":0}\n\n')


async def test_head_and_ready_come_at_once_without_any_event(
    gateway: Gateway, person: Person
) -> None:
    """G11: an open stream is known to be open. The headers are those of an event stream."""
    (project,) = person.projects
    async with gateway.client.stream(
        "GET", f"/projects/{project}/events", headers=person.bearer()
    ) as response:
        assert response.status_code == 200
        expected = {
            "content-type": "text/event-stream",
            "cache-control": "no-cache, no-transform",
            "connection": "keep-alive",
            "x-accel-buffering": "no",
        }
        assert {name: response.headers[name] for name in expected} == expected
        async with asyncio.timeout(2):
            text = await anext(response.aiter_text())
        assert 'event: ready\ndata: {"cursor":0}' in text


async def test_retry_differs_from_client_to_client(gateway: Gateway, person: Person) -> None:
    """G14: the server spreads those who come back."""
    waits = set()
    for _ in range(5):
        async with gateway.follow(person.projects[0], person.bearer()) as reader:
            waits.add((await reader.next()).retry)
    assert len(waits) > 1
    assert all(wait is not None and 500 <= wait <= 10_000 for wait in waits)


async def test_an_old_client_gets_the_bare_stream(gateway: Gateway, person: Person) -> None:
    request = get(person.projects[0], person, version="1.0")
    async with asyncio.timeout(10), raw(gateway, request) as (reader, _):
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        assert b"connection: close" in head
        assert (await reader.readuntil(b"\n\n")).startswith(b"retry: ")


async def test_a_stream_answers_no_head_request(gateway: Gateway, person: Person) -> None:
    answer = await gateway.client.head(
        f"/projects/{person.projects[0]}/events", headers=person.bearer()
    )
    assert answer.status_code == 405
    # The connection serves the next request.
    assert (await gateway.client.get("/me", headers=person.bearer())).status_code == 200


async def test_a_pipelined_request_behind_a_stream_is_not_answered_into_it(
    gateway: Gateway, person: Person
) -> None:
    request = get(person.projects[0], person) + "GET /me HTTP/1.1\nHost: localhost\n\n"
    async with asyncio.timeout(10), raw(gateway, request) as (reader, _):
        await reader.readuntil(b'{"cursor":0}\n\n')
        await gateway.create_task(person)
        text = await reader.readuntil(b'"prev":0}\n\n')
        assert b"HTTP/1.1" not in text


async def test_a_stream_after_another_request_on_the_same_connection(
    gateway: Gateway, person: Person
) -> None:
    request = "GET /nowhere HTTP/1.1\nHost: localhost\n\n"
    async with asyncio.timeout(10), raw(gateway, request) as (reader, writer):
        await reader.readuntil(b"}")
        writer.write(get(person.projects[0], person).replace("\n", "\r\n").encode())
        await reader.readuntil(b'{"cursor":0}\n\n')


async def test_heartbeats_come_within_the_interval(
    start_gateway: StartGateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G13: idle proxies are kept awake."""
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.5)
    gateway = await start_gateway()
    async with asyncio.timeout(10), raw(gateway, get(person.projects[0], person)) as (reader, _):
        await reader.readuntil(b'{"cursor":0}\n\n')
        for _ in range(3):
            async with asyncio.timeout(1.5):
                chunk = await reader.readuntil(b"\n\r\n")
                assert re.fullmatch(rb"(\r\n)?12\r\n: ping \d{10}\n\r\n", chunk)


async def test_heartbeats_are_spread_over_the_interval(gateway: Gateway, person: Person) -> None:
    slots = set()
    async with asyncio.timeout(20):
        for _ in range(10):
            async with gateway.follow(person.projects[0], person.bearer()) as reader:
                await reader.next()
                slots |= {one.slot for one in open_streams()}
            await nothing_open()
    assert len(slots) > 5


def open_streams() -> list[stream.Stream]:
    return [one for one in gc.get_objects() if isinstance(one, stream.Stream)]


async def nothing_open() -> None:
    await eventually_async(lambda: not open_streams())


def counted(why: str) -> float:
    value = REGISTRY.get_sample_value("aivedio_gateway_streams_closed_total", {"why": why})
    return value or 0.0


async def test_a_closed_browser_is_forgotten_at_once_and_leaks_nothing(
    gateway: Gateway, person: Person
) -> None:
    """G1, G4, G7: whether it reads, leaves early or never reads at all."""
    (project,) = person.projects
    for round_ in range(60):
        if round_ == 20:
            await nothing_open()
            gc.collect()
            before = len(gc.get_objects())
        async with raw(gateway, get(project, person)) as (reader, _):
            if round_ % 3:
                await reader.readuntil(b'{"cursor":0}\n\n')
    await nothing_open()
    gc.disable()
    try:
        async with raw(gateway, get(project, person)) as (reader, _):
            await reader.readuntil(b'{"cursor":0}\n\n')
        # Freed by its last reference: no cycle waits for the collector.
        await nothing_open()
    finally:
        gc.enable()
    gc.collect()
    assert len(gc.get_objects()) - before < 400


async def test_who_never_finishes_a_request_is_cut_off(
    gateway: Gateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover.HttpProtocol, "head_within_s", 0.3)
    unfinished = ("", "GET /me HTTP/1.1\nHost: lo", "GET /me HTTP/1.1\nHost: localhost\n\nGET /m")
    for request in unfinished:
        async with asyncio.timeout(5), raw(gateway, request) as (reader, _):
            await reader.read()
    async with raw(gateway, get(person.projects[0], person)) as (reader, _):
        await reader.readuntil(b'{"cursor":0}\n\n')
        made = await gateway.create_task(person)
        async with asyncio.timeout(5):
            await reader.readuntil(b"id: %d\n" % made["event_id"])


async def test_a_head_without_an_end_is_refused_while_it_comes(gateway: Gateway) -> None:
    """Else anybody could fill this process's memory as fast as the network brings it."""
    async with (
        asyncio.timeout(10),
        raw(gateway, "GET / HTTP/1.1\nHost: x\nx-long: ") as (
            reader,
            writer,
        ),
    ):
        writer.write(b"y" * 40_000)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b'"code":"headers_too_large"' in answer


async def test_more_connections_than_there_may_be_are_told_so(
    gateway: Gateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams do not count: they have a limit of their own."""
    monkeypatch.setattr(takeover.HttpProtocol, "connections_at_most", 1)
    await gateway.client.aclose()
    following = get(person.projects[0], person)
    async with AsyncExitStack() as opened:
        for _ in range(3):
            reader, _writer = await opened.enter_async_context(raw(gateway, following))
            await reader.readuntil(b'{"cursor":0}\n\n')
        await opened.enter_async_context(raw(gateway, ""))
        refused, _writer = await opened.enter_async_context(raw(gateway, ""))
        async with asyncio.timeout(10):
            assert (await refused.read()).startswith(b"HTTP/1.1 503 ")


async def test_a_reader_that_talks_is_cut_off(gateway: Gateway, person: Person) -> None:
    async with (
        asyncio.timeout(10),
        raw(gateway, get(person.projects[0], person)) as (reader, writer),
    ):
        await reader.readuntil(b'{"cursor":0}\n\n')
        writer.write(b"x" * 20_000)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readuntil(b"never")


async def test_a_slow_reader_slows_nobody_and_loses_nothing(
    gateway: Gateway, person: Person
) -> None:
    """G5, G8, G10: bounded, then cut off; with its cursor it gets all that it missed."""
    (project,) = person.projects
    task = await gateway.create_task(person)
    await gateway.sql(PROGRESS_FUNCTION)
    slow_request = get(project, person, "Last-Event-ID: 0")
    held: list[int] = []
    overflows = counted("overflow")
    async with (
        raw(gateway, slow_request, receive_buffer=4096) as (slow, _),
        gateway.follow(project, person.bearer(), cursor=0) as quick,
    ):
        await slow.readuntil(b'{"cursor":0}\n\n')
        await quick.next()
        await quick.until(task["event_id"])
        for _ in range(6):
            ids = [row[0] for row in await gateway.sql(BURST, task["task_id"], 400)]
            await gateway.publish(*ids)
            await quick.until(ids[-1], within=5.0)
            held += [
                one._transport.get_write_buffer_size()
                for one in open_streams()
                if one.stalled_at and one._transport
            ]
        # It was kept waiting for as long as the ring held what it lacked, and not longer.
        assert held and max(held) < 300_000
        assert counted("overflow") == overflows + 1
    async with gateway.follow(project, person.bearer(), cursor=task["event_id"]) as again:
        await again.until(ids[-1])
        assert again.ids[-1] == ids[-1]
        assert set(again.versions) == {str(task["task_id"])}


# Status changes, which are never left out, written straight into the tables: many, quickly.
PROGRESS_FUNCTION = """
create function public.burst(p_task uuid, p_count integer) returns setof bigint
language plpgsql as $burst$
declare
  v_task aivedio.generation_tasks;
begin
  for v_number in 1 .. p_count loop
    select * into v_task from aivedio.generation_tasks where id = p_task;
    v_task.status := case when v_task.status = 'queued' then 'running' else 'queued' end;
    v_task.stage := v_task.status;
    v_task := aivedio._emit(v_task, v_task.current_attempt_id, 'command', clock_timestamp());
    return next v_task.last_event_id;
  end loop;
end;
$burst$;
"""
BURST = "select * from public.burst(%s, %s)"


async def test_a_reader_that_takes_nothing_is_given_up(
    start_gateway: StartGateway, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STALL_S", 0.5)
    monkeypatch.setattr(streams, "SWEEP_S", 0.1)
    gateway = await start_gateway()
    task = await gateway.create_task(person)
    await gateway.sql(PROGRESS_FUNCTION)
    await gateway.sql(BURST, task["task_id"], 900)
    request = get(person.projects[0], person, "Last-Event-ID: 0")
    async with asyncio.timeout(20), raw(gateway, request, receive_buffer=4096):
        await eventually_async(open_streams)
        await nothing_open()
