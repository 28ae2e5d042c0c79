"""
One open stream: the only object left of a connection once it streams.

The HTTP answer begins in uvicorn's hands. Then `takeover` gives the transport to a `Stream`, and
uvicorn's protocol, parser, request and task end: an idle connection costs its socket and this.
From there nothing is awaited. Bytes go to the transport; when it holds more than its high-water
mark the stream is `blocked`, its hub keeps only its cursor, and goes on once the transport has
drained.

There are two languages, `event_stream` and `socket_stream`, which say the same few things:

    ready    the cursor from which the stream goes on, and how long to wait before coming back
    reset    the same, but the asked cursor cannot be continued: take a snapshot
    event    a change of a task, naming the one sent before it
    status   whether the gateway reaches PostgreSQL: without it nobody knows what is missing
    ping     every 25 s
    an end   whose reason tells the client what to do: renew, come back, or stay away
"""

from __future__ import annotations

import asyncio
import random
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from edge.gateway import metrics
from edge.gateway.audience import Batch
from edge.gateway.hub import Hub
from edge.gateway.store import Grant

if TYPE_CHECKING:
    from edge.gateway.streams import Streams

HIGH_WATER = 64 * 1024
RETRY_MS = (1000, 4000)


class Stream(asyncio.Protocol):
    """A connection that follows one project. Its hub knows it as a `Follower`."""

    __slots__ = (
        "_ending", "_streams", "_told_away", "_transport",
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
        self._ending = False
        self._told_away = False

    def start(self, transport: asyncio.Transport, scope: Any) -> None:
        """Send the head of the answer to the request that `scope` describes."""
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)
        transport.write(self._head(scope))

    # What a language has to say

    @abstractmethod
    def _head(self, scope: Any) -> bytes:
        """Return the head of the HTTP answer."""

    @abstractmethod
    def _ready(self, cursor: int, retry_ms: int) -> bytes:
        """Return the announcement of a cursor."""

    @abstractmethod
    def _reset(self, reason: str, cursor: int, retry_ms: int) -> bytes:
        """Return the announcement of a new start."""

    @abstractmethod
    def _status(self, *, away: bool) -> bytes:
        """Return the news that PostgreSQL is away, or back."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Hand a batch to the transport."""

    @abstractmethod
    def ping(self, now: int) -> None:
        """Show that the connection lives, unless it takes nothing."""

    @abstractmethod
    def renew(self) -> None:
        """End the stream because its credential ended."""

    @abstractmethod
    def revoke(self) -> None:
        """End the stream because its access was taken away."""

    @abstractmethod
    def drain(self, retry_ms: int) -> None:
        """End the stream because the server stops; ask to come back after a while."""

    @abstractmethod
    def _send(self, said: bytes) -> None:
        """Hand something other than events to the transport."""

    # For the hub

    @property
    def blocked(self) -> bool:
        """Whether the transport holds all it may."""
        return self.stalled_at is not None

    def ready(self, cursor: int) -> None:
        """Announce the cursor from which the stream goes on."""
        self._send(self._ready(cursor, random.randint(*RETRY_MS)))

    def reset(self, reason: str, cursor: int) -> None:
        """Announce that the asked cursor cannot be continued, and from where it goes on."""
        metrics.RESETS.labels(reason).inc()
        self._send(self._reset(reason, cursor, random.randint(*RETRY_MS)))

    def close(self, reason: str) -> None:
        """Cut the connection: its reader is too far behind, and comes back with its cursor."""
        self.give_up(reason)

    # For the process

    def tell(self, *, away: bool) -> None:
        """Say whether PostgreSQL is away, unless that is known or nothing can be said now."""
        if self._told_away != away and not self.blocked:
            self._told_away = away
            self._send(self._status(away=away))

    def give_up(self, why: str) -> None:
        """Cut the connection, whatever its reader has not taken yet."""
        metrics.CLOSED.labels(why).inc()
        self.hub.leave(self)
        if self._transport is not None:
            self._transport.abort()

    # For the transport

    def pause_writing(self) -> None:
        """Note that the transport holds all it may."""
        if not self._ending:
            self.stalled_at = time.monotonic()
            self.hub.stalled(self)

    def resume_writing(self) -> None:
        """Note that it drained."""
        if not self._ending:
            self.stalled_at = None
            self.hub.writable(self)
            self.tell(away=self._streams.away)

    def eof_received(self) -> bool:
        """Take the reader's half of a close for the whole."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._transport = None
        self.hub.leave(self)
        self._streams.gone(self)

    def _begin_to_end(self, why: str) -> asyncio.Transport | None:
        """
        Leave the hub and return the transport for a last word, None if there is nobody to hear it.

        The sweep cuts off who does not even read that.
        """
        self.hub.leave(self)
        transport = self._transport
        if transport is None or transport.is_closing() or self._ending:
            return None
        metrics.CLOSED.labels(why).inc()
        self._ending = True
        self.stalled_at = self.stalled_at or time.monotonic()
        return transport
