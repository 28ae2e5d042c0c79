"""
One open event stream: the only object left of a connection once it streams.

The HTTP answer begins in uvicorn's hands. Then `HttpProtocol.take` gives the transport to a
`Stream`, and uvicorn's protocol, parser, request and task end: an idle connection costs its
socket and this. From there nothing is awaited. Bytes go to the transport; when it holds more than
its high-water mark the stream is `blocked`, its hub keeps only its cursor, and goes on once the
transport has drained.

Whatever a connection is told is made of the same few frames; the first is ready or reset:

    ready   id, retry (jittered) and {"cursor"}: the stream goes on from there
    reset   id and {"reason","cursor"}: it cannot go on; take a snapshot and go on from there
    renew   the credential expired: come back with a new one
    ping    a comment, every 25 s
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from edge.gateway import metrics
from edge.gateway.audience import Batch
from edge.gateway.hub import Hub
from edge.gateway.problems import Problem
from edge.gateway.store import Grant
from edge.http_server import BoundedProtocol

if TYPE_CHECKING:
    from edge.gateway.streams import Streams

EXTENSION = "aivedio.take"
HIGH_WATER = 64 * 1024
RETRY_MS = (1000, 4000)

# A reader of an event stream has nothing to say; one that talks all the same is cut off.
_MOST_RECEIVED = 16 * 1024

_HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"content-type: text/event-stream\r\n"
    b"cache-control: no-cache, no-transform\r\n"
    b"x-accel-buffering: no\r\n"
    b"x-content-type-options: nosniff\r\n"
)
_HEAD_CHUNKED = _HEAD + b"connection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n"
_HEAD_PLAIN = _HEAD + b"connection: close\r\n\r\n"


class Stream(asyncio.Protocol):
    """A connection that follows one project. Its hub knows it as a `Follower`."""

    __slots__ = (
        "_chunked", "_received", "_streams", "_transport",
        "expires_at", "grant", "hub", "slot", "stalled_at",
    )  # fmt: skip

    def __init__(self, hub: Hub, grant: Grant, expires_at: int, streams: Streams) -> None:
        self.hub = hub
        self.grant = grant
        self.expires_at = expires_at
        self.slot = 0
        # Since when the transport takes no more, or the end of the stream has not been read.
        self.stalled_at: float | None = None
        self._streams = streams
        self._transport: asyncio.Transport | None = None
        self._chunked = True
        self._received = 0

    def start(self, transport: asyncio.Transport, http_version: str) -> None:
        """Send the head of the answer. HTTP/1.0 knows no chunks."""
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)
        self._chunked = http_version == "1.1"
        transport.write(_HEAD_CHUNKED if self._chunked else _HEAD_PLAIN)

    # For the hub

    @property
    def blocked(self) -> bool:
        """Whether the transport holds all it may."""
        return self.stalled_at is not None

    def ready(self, cursor: int) -> None:
        """Announce the cursor from which the stream goes on."""
        retry = random.randint(*RETRY_MS)
        self._send(
            b'retry: %d\nid: %d\nevent: ready\ndata: {"cursor":%d}\n\n' % (retry, cursor, cursor)
        )

    def reset(self, reason: str, cursor: int) -> None:
        """Announce that the asked cursor cannot be continued, and from where it goes on."""
        metrics.RESETS.labels(reason).inc()
        self._send(
            b'retry: %d\nid: %d\nevent: reset\ndata: {"reason":"%b","cursor":%d}\n\n'
            % (random.randint(*RETRY_MS), cursor, reason.encode(), cursor)
        )

    def write(self, batch: Batch) -> None:
        """Hand a batch to the transport."""
        if self._transport is not None:
            self._transport.write(batch.chunk if self._chunked else batch.sse)

    def close(self, reason: str) -> None:
        """Cut the connection: its reader is too far behind, and comes back with its cursor."""
        self.give_up(reason)

    # For the process

    def ping(self, now: int) -> None:
        """
        Show that the connection lives, unless it takes nothing.

        No blank line follows: some clients make an empty event of one.
        """
        if self.stalled_at is None:
            self._send(b": ping %d\n" % now)

    def renew(self) -> None:
        """End the stream because its credential ended."""
        self._finish("expired", b'event: renew\ndata: {"reason":"expired"}\n\n')

    def revoke(self) -> None:
        """End the stream because its access was taken away."""
        self._finish("revoked", b"")

    def drain(self, retry_ms: int) -> None:
        """End the stream because the server stops; ask to come back after a while."""
        self._finish("drained", b"retry: %d\n\n" % retry_ms)

    def give_up(self, why: str) -> None:
        """Cut the connection, whatever its reader has not taken yet."""
        metrics.CLOSED.labels(why).inc()
        self._cut()

    # For the transport

    def pause_writing(self) -> None:
        """Note that the transport holds all it may."""
        self.stalled_at = time.monotonic()
        self.hub.stalled(self)

    def resume_writing(self) -> None:
        """Note that it drained."""
        self.stalled_at = None
        self.hub.writable(self)

    def data_received(self, data: bytes) -> None:
        """Ignore what the reader says, to a bound."""
        self._received += len(data)
        if self._received > _MOST_RECEIVED:
            self.give_up("talkative")

    def eof_received(self) -> bool:
        """Take the reader's half of a close for the whole."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._transport = None
        self.hub.leave(self)
        self._streams.gone(self)

    def _send(self, frame: bytes) -> None:
        if self._transport is not None:
            if self._chunked:
                frame = b"%x\r\n%b\r\n" % (len(frame), frame)
            self._transport.write(frame)

    def _finish(self, why: str, last: bytes) -> None:
        """Say a last word and close. The sweep cuts off who does not even read that."""
        self.hub.leave(self)
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        metrics.CLOSED.labels(why).inc()
        if last and self.stalled_at is None:
            self._send(last)
        if self._chunked:
            transport.write(b"0\r\n\r\n")
        self.stalled_at = self.stalled_at or time.monotonic()
        transport.close()

    def _cut(self) -> None:
        self.hub.leave(self)
        if self._transport is not None:
            self._transport.abort()


class HttpProtocol(BoundedProtocol):
    """A bounded connection, which lets an application take it over."""

    head_within_s = 15.0
    # Other applications of this host may have set cookies, too.
    head_bytes_at_most = 32 * 1024
    headers_at_most = 100
    # All streams of a process may come back at once.
    connections_at_most = 20_000

    def on_message_begin(self) -> None:
        """Offer the take-over. The application removes it from the scope, or a cycle stays."""
        super().on_message_begin()
        scope: Any = self.scope
        scope["extensions"] = {EXTENSION: self.take}

    def problem(self, status: int, code: str) -> bytes:
        """Return the body of a refusal."""
        return bytes(Problem(code).response(uuid.uuid4().hex).body)

    def take(self, cycle: RequestResponseCycle, stream: Stream) -> bool:
        """
        Answer the request that `cycle` stands for with `stream`, and end this protocol.

        Returns False when the client is gone already. The cycle is the one of the application's
        own `send`: with pipelined requests `self.cycle` is another one.
        """
        transport = self.transport
        if transport is None or cycle.disconnected or transport.is_closing():
            return False
        version = cycle.scope["http_version"]
        self._unset_keepalive_if_required()
        self._head_came()
        self.flow.resume_reading()
        self.connections.discard(self)
        transport.set_protocol(stream)
        stream.start(transport, version)
        # uvicorn then takes the request for answered. The rest breaks reference cycles, so that
        # all this is freed now and not by the garbage collector.
        cycle.response_started = cycle.response_complete = True
        cycle.on_response = _nothing
        cycle.transport = cycle.flow = None  # type: ignore[assignment]
        self.pipeline.clear()
        self.cycle = self.parser = self.flow = None  # type: ignore[assignment]
        self.transport = self.scope = self.headers = None  # type: ignore[assignment]
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell uvicorn, unless the connection was taken."""
        if self.transport is not None:
            super().connection_lost(exc)


def _nothing() -> None:
    return None
