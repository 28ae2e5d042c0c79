"""
uvicorn, as every port of ours wants it: bounded before any application sees a request.

uvicorn limits neither the size nor the number of headers, nor the time they take to arrive; this
protocol does, and says so as problem+json. The process owns the signals, not the server.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class BoundedProtocol(HttpToolsProtocol):
    """
    One connection. Refuses a head that is too large, and cuts off one that is too slow.

    `connections_at_most` is judged as connections come; it counts none that was handed on.
    """

    head_within_s: ClassVar[float] = 10.0
    head_bytes_at_most: ClassVar[int] = 16 * 1024
    headers_at_most: ClassVar[int] = 64
    connections_at_most: ClassVar[int] = 4000

    _head_bytes = 0
    _refused = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: a connection that sends no request is closed as well."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > self.connections_at_most:
            self._refuse(503, "unavailable")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the clock."""
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse on, as long as an unfinished head stays small."""
        if self._refused:
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._timer is not None and self._head_bytes > self.head_bytes_at_most:
            self._refuse(431, "headers_too_large")

    def on_message_begin(self) -> None:
        """Start the clock for the next request of a connection."""
        super().on_message_begin()
        if self._timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Let a head of acceptable size through."""
        self._head_came()
        size = sum(len(name) + len(value) + 4 for name, value in self.headers) + len(self.url)
        if len(self.headers) > self.headers_at_most or size > self.head_bytes_at_most:
            self._refuse(431, "headers_too_large")
        if not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass the body of an accepted request on."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Pass the end of an accepted request on."""
        if not self._refused:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(400, "bad_request")

    def problem(self, status: int, code: str) -> bytes:
        """Return the body of a refusal: headers_too_large, bad_request or unavailable."""
        raise NotImplementedError

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._timer = self.loop.call_later(self.head_within_s, self._too_slow)

    def _head_came(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self.transport is not None:
            self.transport.abort()

    def _refuse(self, status: int, code: str, more_headers: bytes = b"") -> None:
        if self._refused:
            return
        self._refused = True
        self._head_came()
        # While an earlier request is being answered, an answer to this one would be taken for it.
        if self.cycle is None or self.cycle.response_complete:
            body = self.problem(status, code)
            self.transport.write(
                b"HTTP/1.1 %d \r\ncontent-type: application/problem+json\r\n"
                b"content-length: %d\r\nconnection: close\r\n%s\r\n%s"
                % (status, len(body), more_headers, body)
            )
        self.transport.close()


def raise_descriptor_limit() -> None:
    """Allow as many connections as the system lets this process have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Server(uvicorn.Server):
    """A uvicorn server that leaves the signals alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing: whoever runs this server sets `should_exit`."""
        yield
