"""
The admin port of a process, on the loopback interface unless told otherwise.

    GET /live      200 while the event loop turns
    GET /ready     200 once the process can do its work, 503 before and while it stops
    GET /metrics   the process's Prometheus metrics

It is a few lines of HTTP of its own because every process has one, most without any other
server, and it must answer while a server that it reports on is draining.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

LOOPBACK = "127.0.0.1"

_LINE_LIMIT = 4096
_REQUEST_TIMEOUT = 5.0
_TEXT = "text/plain; charset=utf-8"


@asynccontextmanager
async def serving(
    port: int, is_ready: Callable[[], bool], host: str = LOOPBACK
) -> AsyncIterator[None]:
    """Answer on `host`:`port` inside the block; port 0 means no admin port."""
    if port == 0:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                request = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                writer.write(_response(request, is_ready()))
                await writer.drain()
        except (TimeoutError, ValueError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host, port, limit=_LINE_LIMIT)
    try:
        yield
    finally:
        server.close()


def _response(request: bytes, ready: bool) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return _encode("405 Method Not Allowed", _TEXT, b"only GET\n")
    match path:
        case b"/live":
            return _encode("200 OK", _TEXT, b"alive\n")
        case b"/ready" if ready:
            return _encode("200 OK", _TEXT, b"ready\n")
        case b"/ready":
            return _encode("503 Service Unavailable", _TEXT, b"not ready\n")
        case b"/metrics":
            return _encode("200 OK", CONTENT_TYPE_LATEST, generate_latest(REGISTRY))
    return _encode("404 Not Found", _TEXT, b"see /live, /ready, /metrics\n")


def _encode(status: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
