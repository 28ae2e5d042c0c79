"""
Server-Sent Events, the language of streams over plain HTTP.

    ready    id, retry (jittered) and {"cursor"}
    reset    id, retry and {"reason","cursor"}
    status   {"database":"away"} or {"database":"back"}
    renew    the credential expired: come back with a new one
    ping     a comment

An end without `renew` means: come back, after `retry` if one was sent.
"""

from __future__ import annotations

from typing import Any

from edge.gateway.audience import Batch
from edge.gateway.hub import Hub
from edge.gateway.store import Grant
from edge.gateway.stream import Stream
from edge.gateway.streams import Streams

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


class EventStream(Stream):
    """A stream of Server-Sent Events."""

    __slots__ = ("_chunked", "_received")

    def __init__(self, hub: Hub, grant: Grant, expires_at: int, streams: Streams) -> None:
        super().__init__(hub, grant, expires_at, streams)
        self._chunked = True
        self._received = 0

    def _head(self, scope: Any) -> bytes:
        # HTTP/1.0 knows no chunks.
        self._chunked = scope["http_version"] == "1.1"
        return _HEAD_CHUNKED if self._chunked else _HEAD_PLAIN

    def _ready(self, cursor: int, retry_ms: int) -> bytes:
        return b'retry: %d\nid: %d\nevent: ready\ndata: {"cursor":%d}\n\n' % (
            retry_ms,
            cursor,
            cursor,
        )

    def _reset(self, reason: str, cursor: int, retry_ms: int) -> bytes:
        return b'retry: %d\nid: %d\nevent: reset\ndata: {"reason":"%b","cursor":%d}\n\n' % (
            retry_ms,
            cursor,
            reason.encode(),
            cursor,
        )

    def _status(self, *, away: bool) -> bytes:
        return b'event: status\ndata: {"database":"%b"}\n\n' % (b"away" if away else b"back")

    def write(self, batch: Batch) -> None:
        """Hand a batch to the transport."""
        if self._transport is not None:
            self._transport.write(batch.chunk if self._chunked else batch.sse)

    def ping(self, now: int) -> None:
        """
        Show that the connection lives, unless it takes nothing.

        No blank line follows: some clients make an empty event of one.
        """
        if not self.blocked:
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

    def data_received(self, data: bytes) -> None:
        """Ignore what the reader says, to a bound."""
        self._received += len(data)
        if self._received > _MOST_RECEIVED:
            self.give_up("talkative")

    def _send(self, said: bytes) -> None:
        if self._transport is not None:
            if self._chunked:
                said = b"%x\r\n%b\r\n" % (len(said), said)
            self._transport.write(said)

    def _finish(self, why: str, last: bytes) -> None:
        """Say a last word and close."""
        blocked = self.blocked
        transport = self._begin_to_end(why)
        if transport is None:
            return
        if last and not blocked:
            self._send(last)
        if self._chunked:
            transport.write(b"0\r\n\r\n")
        transport.close()
