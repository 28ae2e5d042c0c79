"""Behind Debian's nginx, with the configuration that deploy/ ships."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect

from edge.gateway import streams
from tests.py.gateway.conftest import Gateway, Person, StartGateway
from tests.py.gateway.nginx import Nginx, nginx
from tests.py.gateway.sockets import Socket
from tests.py.gateway.test_stream import BURST, PROGRESS_FUNCTION, get, open_streams
from tests.py.support.waiting import eventually_async

# About as long as a frame is.
FRAME = 250
READY = b'{"cursor":0}\n\n'


@asynccontextmanager
async def curl(
    front: Nginx, person: Person, *more: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
    process = await asyncio.create_subprocess_exec(
        *("curl", "-sN", "--http2", "--max-time", "30", "--cacert", str(front.certificate)),
        *("-H", f"Authorization: {person.bearer()['authorization']}", *more),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    try:
        yield process, process.stdout
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_events_pass_at_once_over_http2_and_over_websocket(
    gateway: Gateway, person: Person, free_port: Callable[[], int]
) -> None:
    """One connection of HTTP/2 carries several streams and is free for more."""
    (project,) = person.projects
    async with nginx(free_port(), gateway.url) as front:
        events = f"{front.url}/projects/{project}/events"
        address = f"wss://localhost:{front.port}/projects/{project}/ws"
        async with (
            curl(front, person, "-D", "-", "-Z", events, events) as (_, out),
            connect(
                address,
                ssl=front.context(),
                additional_headers=person.bearer(),
                proxy=None,
            ) as connection,
            asyncio.timeout(20),
        ):
            seen = await out.readuntil(READY) + await out.readuntil(READY)
            assert seen.count(b"HTTP/2 200") == 2
            assert seen.count(b"content-type: text/event-stream") == 2
            talking = Socket(connection)
            assert (await talking.next())["type"] == "ready"
            for _ in range(3):
                made = await gateway.create_task(person)
                await gateway.publish(made["event_id"])
                told = time.monotonic()
                await talking.until(made["event_id"])
                for _ in range(2):
                    frame = await out.readuntil(b"}\n\n")
                    assert b"id: %d\n" % made["event_id"] in frame
                assert time.monotonic() - told < 5.0, "nothing waits for a buffer to fill"
            # A command passes back, too.
            cancel = {"type": "cancel", "request_id": "c", "task_id": str(made["task_id"])}
            assert (await talking.ask(**cancel))["verdict"] == "applied"
        async with curl(
            front, person, "-o", "/dev/null", "-w", "%{http_version} %{http_code}",
            f"{front.url}/projects/{project}/tasks",
        ) as (_, out):  # fmt: skip
            assert await out.read() == b"2 200"


async def test_heartbeats_outlive_an_idle_proxy(
    start_gateway: StartGateway,
    person: Person,
    free_port: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G13: nginx cuts what is silent for longer than its limit, and never a stream that pings."""
    (project,) = person.projects
    limit = 2.0
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.5)
    gateway = await start_gateway()
    async with nginx(free_port(), gateway.url, proxy_read_timeout=f"{limit:.0f}s") as front:
        events = f"{front.url}/projects/{project}/events"
        async with asyncio.timeout(30), curl(front, person, events) as (_, out):
            await out.readuntil(READY)
            opened = time.monotonic()
            while time.monotonic() - opened < limit + 1.0:
                assert (await out.readuntil(b"\n")).startswith(b": ping ")
            # Without its heartbeats the same stream is cut: the limit is a real one.
            monkeypatch.setattr(streams.Streams, "_ping", lambda self, slot: None)
            assert (await out.read()).count(b": ping ") < 5


async def test_a_browser_that_does_not_read_is_noticed_through_the_proxy(
    gateway: Gateway, person: Person, free_port: Callable[[], int]
) -> None:
    """G5, G8: its stream is blocked after kilobytes, and others have everything at once."""
    (project,) = person.projects
    task = await gateway.create_task(person)
    await gateway.sql(PROGRESS_FUNCTION)
    async with nginx(free_port(), gateway.url) as front:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", front.port))
        reader, writer = await asyncio.open_connection(
            sock=sock, ssl=front.context(), server_hostname="localhost", limit=2**12
        )
        async with (
            asyncio.timeout(60),
            gateway.follow(project, person.bearer(), cursor=task["event_id"]) as quick,
        ):
            request = get(project, person, f"Last-Event-ID: {task['event_id']}")
            writer.write(request.replace("\n", "\r\n").encode())
            await reader.readuntil(b"event: ready")
            sent = 0
            while not any(one.stalled_at for one in open_streams()):
                ids = [row[0] for row in await gateway.sql(BURST, task["task_id"], 200)]
                await gateway.publish(*ids)
                await quick.until(ids[-1])
                sent += len(ids) * FRAME
                assert sent < 1_500_000, "megabytes lie between the gateway and a browser"
        writer.transport.abort()
    await eventually_async(lambda: not open_streams())
