"""
The connections that follow one chain, and how its events are written to them.

The rules are numbered with those of `hub`:

R8   A batch fixes its bytes and its recipients when its writing starts. The next one waits. Who
     attaches is brought to the batch's end and is no recipient of it; who is ahead of it waits for
     a batch that covers its cursor; who stalls is no recipient any longer.
R10  A connection that cannot be written to keeps only its cursor. Once writable it gets the ring
     after it, without the progress events that a later event of the same task supersedes there;
     each frame names the id sent before it. A cursor that fell below the ring: close.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from edge.gateway import websocket
from edge.gateway.frames import Event
from edge.gateway.ring import Ring


class Batch:
    """Frames that follow each other, encoded once however many connections get them."""

    __slots__ = ("_chunk", "_messages", "_sse", "last", "links")

    def __init__(self, links: list[tuple[int, Event]]) -> None:
        self.links = links
        self.last = links[-1][1].event_id
        self._sse: bytes | None = None
        self._chunk: bytes | None = None
        self._messages: bytes | None = None

    @property
    def sse(self) -> bytes:
        """The frames as a text/event-stream reads them."""
        if self._sse is None:
            self._sse = b"".join([event.closed(prev) for prev, event in self.links])
        return self._sse

    @property
    def chunk(self) -> bytes:
        """The same as one chunk of a chunked HTTP/1.1 body."""
        if self._chunk is None:
            self._chunk = b"%x\r\n%b\r\n" % (len(self.sse), self.sse)
        return self._chunk

    @property
    def messages(self) -> bytes:
        """The same as messages of a WebSocket."""
        if self._messages is None:
            texts = [event.message(prev) for prev, event in self.links]
            text = websocket.Opcode.TEXT
            self._messages = b"".join([websocket.frame(text, one) for one in texts])
        return self._messages


class Follower(Protocol):
    """A connection as its hub knows it."""

    @property
    def blocked(self) -> bool:
        """Whether nothing may be written now; the hub is told by `writable` when that ends."""

    def ready(self, cursor: int) -> None:
        """Announce that the stream goes on from `cursor`."""

    def reset(self, reason: str, cursor: int) -> None:
        """Announce that the stream cannot be continued and starts anew at `cursor`."""

    def write(self, batch: Batch) -> None:
        """Send the frames, all of them."""

    def close(self, reason: str) -> None:
        """End the connection; the hub has forgotten it already."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a hub keeps, asks for and hands over at a time, in events."""

    ring: int = 1000
    deep: int = 5000
    pending: int = 256
    page: int = 500
    piece: int = 128
    pieces: int = 64


class Audience:
    """Everybody who was told a cursor of this chain."""

    __slots__ = (
        "_batch", "_before", "_deep", "_early", "_lag", "_limits", "_live", "_pieces", "_sent",
        "_todo", "ring",
    )  # fmt: skip

    def __init__(self, ring: Ring, limits: Limits) -> None:
        self.ring = ring
        self._limits = limits
        # Each connection is in one of these: up to date, behind at a cursor, ahead at a cursor.
        self._live: set[Follower] = set()
        self._lag: dict[Follower, int] = {}
        self._early: dict[Follower, int] = {}
        # Those who came by a backward read, until they are up to date.
        self._deep: set[Follower] = set()
        # Up to where events were handed to writing, and before the batch that is being written.
        self._sent = self._before = ring.last
        self._batch: Batch | None = None
        self._todo: set[Follower] = set()
        self._pieces: dict[int, Batch] = {}

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self._live) + len(self._lag) + len(self._early)

    @property
    def unsent(self) -> bool:
        """Whether events wait for a turn to be written."""
        return bool(self._todo) or self.ring.last > self._sent

    @property
    def backlog(self) -> int:
        """How many events wait for a turn to be written."""
        return self.ring.count_after(self._sent)

    # Coming and going

    def attach(self, follower: Follower, cursor: int, *, deep: bool = False) -> None:
        """Bring a connection that has everything up to `cursor` as far as events are written."""
        if cursor < self.ring.floor:
            self._overflow(follower)
            return
        if cursor > self._sent:
            self._early[follower] = cursor
            return
        while cursor < self._sent and not follower.blocked:
            batch = self._piece(cursor)
            follower.write(batch)
            cursor = batch.last
        if cursor < self._sent or follower.blocked:
            self._lag[follower] = cursor
            if deep:
                self._deep.add(follower)
        else:
            self._live.add(follower)
            self._deep.discard(follower)

    def leave(self, follower: Follower) -> None:
        """Forget a connection. It is no mistake to say so twice."""
        self._live.discard(follower)
        self._todo.discard(follower)
        self._deep.discard(follower)
        self._lag.pop(follower, None)
        self._early.pop(follower, None)

    def dismiss(self) -> list[Follower]:
        """Forget everybody, and return who they were."""
        everybody = [*self._live, *self._lag, *self._early]
        for group in (self._live, self._lag, self._early, self._deep, self._todo):
            group.clear()
        return everybody

    def stalled(self, follower: Follower) -> None:
        """Take in that a connection became blocked by itself, not by a write from here."""
        if follower in self._live:
            self._live.discard(follower)
            self._lag[follower] = self._before if follower in self._todo else self._sent
            self._todo.discard(follower)

    def writable(self, follower: Follower) -> None:
        """Take in that a blocked connection drained."""
        cursor = self._lag.pop(follower, None)
        if cursor is not None:
            self.attach(follower, cursor)

    def _overflow(self, follower: Follower) -> None:
        self.leave(follower)
        follower.close("overflow")

    # Writing

    def flush(self) -> None:
        """Start to write what came since the last batch, unless that one is still being written."""
        if self._todo or self.ring.last == self._sent:
            return
        if self._sent < self.ring.floor:
            # More came at once than is ever kept: nobody can be brought to the present.
            for follower in list(self._live):
                self._overflow(follower)
            self._sent = self.ring.floor
        self._before = self._sent
        events = self.ring.after(self._sent)[: self._limits.page]
        # Prev along the chain is what a live connection was sent before.
        self._batch = Batch([(event.prev, event) for event in events])
        self._sent = self._batch.last
        self._todo = set(self._live)
        self._pieces.clear()
        for follower, cursor in list(self._early.items()):
            if cursor <= self._sent:
                del self._early[follower]
                self.attach(follower, cursor)

    def step(self, most: int = 256) -> int:
        """Write to the next recipients, `most` of them, and return how many it were."""
        batch = self._batch
        todo = self._todo
        done = 0
        while todo and done < most:
            follower = todo.pop()
            done += 1
            assert batch is not None
            follower.write(batch)
            if follower.blocked:
                self._live.discard(follower)
                self._lag[follower] = batch.last
        if not todo:
            self._batch = None
        return done

    def _piece(self, cursor: int) -> Batch:
        """Make the next frames of a connection at `cursor`; many come from the same one."""
        known = self._pieces.get(cursor)
        if known is not None:
            return known
        events = self.ring.after(cursor)
        while events[-1].event_id > self._sent:
            events.pop()
        newest = {event.task: event.event_id for event in events}
        links: list[tuple[int, Event]] = []
        prev = cursor
        for event in events:
            if event.progress_only and newest[event.task] != event.event_id:
                continue
            links.append((prev, event))
            prev = event.event_id
            if len(links) == self._limits.piece:
                break
        batch = Batch(links)
        if len(self._pieces) < self._limits.pieces:
            self._pieces[cursor] = batch
        return batch

    # Keeping

    @property
    def is_full(self) -> bool:
        """Whether the ring holds all that it may ever hold."""
        return len(self.ring) >= self._limits.ring + self._limits.deep

    def shrink(self, *, pinned: bool) -> bool:
        """
        Drop the oldest events, but not yet those that somebody still needs.

        `pinned`: a backward read is under way and must find the ring where it left it. Beyond all
        that a ring may hold nothing helps. Answers whether anything was dropped.
        """
        ring = self.ring
        surplus = len(ring) - self._limits.ring
        excess = surplus - self._limits.deep
        if surplus > 0:
            surplus = max(excess, 0 if pinned else min(surplus, len(ring) - self._needed()))
        if surplus <= 0:
            return False
        ring.drop(surplus)
        self._pieces.clear()
        for follower, cursor in list(self._lag.items()):
            if cursor < ring.floor:
                self._overflow(follower)
        return True

    def _needed(self) -> int:
        """Return how many of the newest events are not written to all that they are kept for."""
        cursors = [self._lag[one] for one in self._deep if one in self._lag]
        return self.ring.count_after(min([self._sent, *cursors]))
