"""
The hub of one project: where live messages, reads of PostgreSQL and connections meet. No I/O.

A hub is told what happens (`message`, `answered`, `failed`, `look`, `join`, `leave`, `stalled`,
`writable`) and says what it wants: reads, by the function it was given, and a turn to write, by
`wake`. Whoever drives it calls `flush` and `step` in that turn. Its rules, by which the tests are
named:

R1   A hub exists, and messages reach it, before its first read starts.
R2   The chain grows only by the event whose prev is its last id. An id that is not above the last
     one is a repeat, unless it lies inside the ring's span and is not in the ring: then ask.
R3   Any other message waits, in bounded number, and asks for a read.
R4   A read is one statement and says itself whether it continues the id it was asked for. If it
     does not, the chain has forked.
R5   One read forward is in flight at a time. A need that arises meanwhile asks once more after it.
R6   Anything may confirm a cursor above the ring, but only a read that started after it came may
     deny it: ahead, reset. A message that a read to the end did not explain is dropped; had it
     come while that read was in flight, it has asked for the next one (R5).
R7   A cursor goes on from the ring if the ring holds it. Inside the ring's span but not held: it
     never was of this chain, reset. Above: wait for a read. Below: one backward read extends the
     ring for all who wait; nothing is dropped meanwhile, nor before they have what they came for.
R8   A batch fixes its bytes and its recipients when its writing starts. The next one waits. Who
     attaches is brought to the batch's end and is no recipient of it; who is ahead of it waits for
     a batch that covers its cursor; who stalls is no recipient any longer.
R9   After a fork every connection is kept and gets one reset with the new head, and the answers to
     reads of the old chain are ignored.
R10  A connection that cannot be written to keeps only its cursor. Once writable it gets the ring
     after it, without the progress events that a later event of the same task supersedes there;
     each frame names the id sent before it. A cursor that fell below the ring: close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

from edge.gateway.frames import Event
from edge.gateway.ring import Ring

# No stream reaches it, so a read after it answers with the head and nothing else.
NOWHERE = 2**53 - 1


class Batch:
    """Frames that follow each other, encoded once however many connections get them."""

    __slots__ = ("_chunk", "_sse", "last", "links")

    def __init__(self, links: list[tuple[int, Event]]) -> None:
        self.links = links
        self.last = links[-1][1].event_id
        self._sse: bytes | None = None
        self._chunk: bytes | None = None

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


class Read(NamedTuple):
    """A read of PostgreSQL that a hub asks for."""

    hub: Hub
    kind: Literal["open", "head", "back"]
    generation: int
    number: int
    cursor: int
    limit: int


@dataclass(frozen=True, slots=True)
class Page:
    """The answer: mirror of the SQL type aivedio.event_page, its events encoded."""

    complete: bool
    reason: str | None
    last_event_id: int
    more: bool
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a hub keeps and asks for at a time."""

    ring: int = 1000
    deep: int = 5000
    pending: int = 256
    page: int = 500
    piece: int = 128
    pieces: int = 64


class _Cursor(NamedTuple):
    """Where a joining connection wants to go on, and the newest read when it came."""

    at: int | None
    number: int


class Hub:
    """One project's stream in this process."""

    __slots__ = (
        "_again", "_ahead", "_back", "_batch", "_before", "_behind", "_bottom", "_deep_readers",
        "_early", "_flight", "_forked", "_generation", "_lag", "_limits", "_live", "_number",
        "_pending", "_pieces", "_read", "_ring", "_sent", "_todo", "_wake", "project",
    )  # fmt: skip

    def __init__(
        self,
        project: UUID,
        read: Callable[[Read], None],
        wake: Callable[[Hub], None],
        limits: Limits | None = None,
    ) -> None:
        self.project = project
        self._read = read
        self._wake = wake
        self._limits = limits or Limits()
        self._generation = 0
        self._number = 0
        self._live: set[Follower] = set()
        self._lag: dict[Follower, int] = {}
        self._early: dict[Follower, int] = {}
        self._ahead: dict[Follower, _Cursor] = {}
        self._behind: dict[Follower, int] = {}
        self._forked: dict[Follower, str] = {}
        self._deep_readers: set[Follower] = set()
        self._clear()

    def _clear(self) -> None:
        self._ring: Ring | None = None
        self._pending: dict[int, Event] = {}
        self._sent = 0
        self._before = 0
        self._batch: Batch | None = None
        self._todo: set[Follower] = set()
        self._pieces: dict[int, Batch] = {}
        self._flight: int | None = None
        self._again = False
        self._back: Read | None = None
        # Whether nothing older than the ring is stored.
        self._bottom = False

    @property
    def last(self) -> int | None:
        """The newest id of the chain as far as it is known."""
        return None if self._ring is None else self._ring.last

    @property
    def unsent(self) -> bool:
        """Whether events wait for a turn to be written."""
        return bool(self._todo) or (self._ring is not None and self._ring.last > self._sent)

    @property
    def backlog(self) -> int:
        """How many events wait for a turn to be written."""
        return 0 if self._ring is None else self._ring.count_after(self._sent)

    @property
    def followers(self) -> int:
        """How many connections it has, in whatever condition."""
        return (
            len(self._live) + len(self._lag) + len(self._early) + len(self._ahead)
            + len(self._behind) + len(self._forked)
        )  # fmt: skip

    # Messages

    def message(self, event: Event) -> None:
        """Take in a live event: a hint that may be a repeat, out of order, or no fact at all."""
        ring = self._ring
        if ring is not None:
            if event.event_id <= ring.last:
                if event.event_id > ring.floor and not ring.holds(event.event_id):
                    self._need()
                return
            if event.prev == ring.last:
                ring.append(event)
                self._grown()
                return
        if len(self._pending) >= self._limits.pending:
            self._pending.clear()  # the read brings those that are facts
        self._pending[event.prev] = event
        self._need()

    def look(self, head: int, then: int | None = None) -> None:
        """
        Take in what PostgreSQL said the stream's head is.

        `then` is `last` as it was when that statement was sent: a head below it means that the
        chain lost events. Without it, a head that the ring holds is taken for an old answer.
        """
        ring = self._ring
        if ring is None or head == ring.last:
            return
        if not ring.holds(head) or (then is not None and head < then):
            self._need()

    def _grown(self) -> None:
        ring = self._ring
        assert ring is not None
        while (waiting := self._pending.pop(ring.last, None)) is not None:
            ring.append(waiting)
        for prev, event in list(self._pending.items()):
            if event.event_id <= ring.last:
                del self._pending[prev]
        if len(ring) > self._limits.ring + self._limits.deep:
            self._shrink()
        self._settle_ahead()
        self._wake(self)

    # Reads

    def _need(self) -> None:
        if self._flight is not None or self._ring is None:
            self._again = True
            return
        self._ask("head", self._ring.last, self._limits.page)

    def _open(self, cursor: int | None) -> None:
        self._generation += 1
        self._ask("open", NOWHERE if cursor is None else cursor, self._limits.ring)

    def _ask(self, kind: Literal["open", "head"], cursor: int, limit: int) -> None:
        self._number += 1
        self._flight = self._number
        self._read(Read(self, kind, self._generation, self._number, cursor, limit))

    def answered(self, read: Read, page: Page) -> None:
        """Take in the answer to a read."""
        if read.generation != self._generation:
            return
        if read.kind == "back":
            self._answered_back(read, page)
            return
        self._flight = None
        if read.kind == "open":
            self._opened(read, page)
        else:
            assert self._ring is not None
            if not page.complete or not _extend(self._ring, page.events):
                self._fork(page.reason or "gap")
                return
            self._again |= page.more
        self._grown()
        if read.kind == "open" or not page.more:
            self._pending.clear()
            self._settle_ahead(read.number)
        if self._again:
            self._again = False
            self._need()

    def _opened(self, read: Read, page: Page) -> None:
        ring = Ring(read.cursor)
        # Too far back to hold, or no cursor of this chain: the head is a place to start all the
        # same, and rule 7 judges the cursor from there.
        if page.more or not page.complete or not _extend(ring, page.events):
            ring = Ring(page.last_event_id)
        self._ring = ring
        self._sent = ring.last
        for follower, reason in self._forked.items():
            follower.reset(reason, ring.last)
            self._attach(follower, ring.last)
        self._forked.clear()

    def _answered_back(self, read: Read, page: Page) -> None:
        ring = self._ring
        assert ring is not None
        self._back = None
        if read.cursor == ring.floor:
            older = page.events if _ends_at(page.events, ring.floor) else []
            self._deep_readers.update(self._behind)
            ring.extend_back(older)
            self._bottom = not (older and page.more)
            self._pieces.clear()
        waiting, self._behind = self._behind, {}
        for follower, cursor in waiting.items():
            self._place(follower, _Cursor(cursor, read.number), None)
        self._shrink()

    def failed(self, read: Read) -> None:
        """Take in that a read failed. The driver calls `retry` after a while."""
        if read.generation != self._generation:
            return
        if read.kind == "back":
            self._back = None
        else:
            self._flight = None
            self._again = True

    def retry(self) -> None:
        """Ask again for what failed reads left open."""
        if self._ring is None:
            if self._flight is None:
                self._open(self._first_cursor())
            return
        if self._flight is None and self._again:
            self._again = False
            self._need()
        if self._behind:
            self._look_back()

    def _first_cursor(self) -> int | None:
        if self._forked or not self._ahead:
            return None
        return next(iter(self._ahead.values())).at

    def _look_back(self) -> None:
        ring = self._ring
        assert ring is not None
        if self._back is not None:
            return
        # Ids rise by at least one, so this many events cannot end before the lowest cursor.
        distance = ring.floor - min(self._behind.values())
        limit = min(distance, self._limits.ring + self._limits.deep - len(ring))
        self._back = Read(self, "back", self._generation, self._number, ring.floor, limit)
        self._read(self._back)

    def _fork(self, reason: str) -> None:
        for group in (self._live, self._lag, self._early, self._ahead, self._behind):
            self._forked.update(dict.fromkeys(group, reason))
            group.clear()
        self._deep_readers.clear()
        self._clear()
        self._open(None)

    # Connections

    def prepare(self, cursor: int | None) -> None:
        """Open the hub, if it is not, for somebody who will join at about `cursor`."""
        if self._ring is None and self._flight is None:
            self._open(cursor)

    def join(self, follower: Follower, cursor: int | None) -> None:
        """Take in a connection that has everything up to `cursor`; None: from now on."""
        if self._ring is None:
            self._ahead[follower] = _Cursor(cursor, self._number)
            if self._flight is None:
                self._open(self._first_cursor())
            return
        self._place(follower, _Cursor(cursor, self._number), None)

    def leave(self, follower: Follower) -> None:
        """Forget a connection. It is no mistake to say so twice."""
        self._live.discard(follower)
        self._todo.discard(follower)
        self._deep_readers.discard(follower)
        for group in (self._lag, self._early, self._ahead, self._behind, self._forked):
            group.pop(follower, None)

    def stalled(self, follower: Follower) -> None:
        """Take in that a connection became blocked by itself, not by a write of this hub."""
        if follower in self._live:
            self._live.discard(follower)
            self._lag[follower] = self._before if follower in self._todo else self._sent
            self._todo.discard(follower)

    def writable(self, follower: Follower) -> None:
        """Take in that a blocked connection drained."""
        cursor = self._lag.pop(follower, None)
        if cursor is not None:
            self._attach(follower, cursor)

    def _place(self, follower: Follower, cursor: _Cursor, number: int | None) -> None:
        """Decide where a connection goes on. `number`: of a complete read that just ended."""
        ring = self._ring
        assert ring is not None
        at = ring.last if cursor.at is None else cursor.at
        if ring.holds(at):
            follower.ready(at)
            self._attach(follower, at)
        elif at > ring.last:
            if number is not None and number > cursor.number:
                self._restart(follower, "ahead")
            else:
                self._ahead[follower] = cursor
                self._need()
        elif at > ring.floor:
            self._restart(follower, "unknown")
        elif self._bottom:
            self._restart(follower, "pruned")
        elif len(ring) >= self._limits.ring + self._limits.deep:
            self._restart(follower, "too_old")
        else:
            self._behind[follower] = at
            self._look_back()

    def _settle_ahead(self, number: int | None = None) -> None:
        if self._ahead:
            waiting, self._ahead = self._ahead, {}
            for follower, cursor in waiting.items():
                self._place(follower, cursor, number)

    def _restart(self, follower: Follower, reason: str) -> None:
        assert self._ring is not None
        follower.reset(reason, self._ring.last)
        self._attach(follower, self._ring.last)

    def _attach(self, follower: Follower, cursor: int) -> None:
        ring = self._ring
        assert ring is not None
        if cursor < ring.floor:
            self.leave(follower)
            follower.close("overflow")
            return
        if cursor > self._sent:
            self._early[follower] = cursor
            self._wake(self)
            return
        while cursor < self._sent and not follower.blocked:
            batch = self._piece(cursor)
            follower.write(batch)
            cursor = batch.last
        if cursor < self._sent or follower.blocked:
            self._lag[follower] = cursor
        else:
            self._live.add(follower)
            self._deep_readers.discard(follower)

    def _piece(self, cursor: int) -> Batch:
        """Make the next frames of a connection at `cursor`; many come from the same one."""
        known = self._pieces.get(cursor)
        if known is not None:
            return known
        assert self._ring is not None
        events = self._ring.after(cursor)
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

    # Writing

    def flush(self) -> None:
        """Start to write what came since the last batch, unless that one is still being written."""
        ring = self._ring
        if ring is None or self._todo or ring.last == self._sent:
            return
        if self._sent < ring.floor:
            # More came at once than is ever kept: nobody can be brought to the present.
            for follower in list(self._live):
                self.leave(follower)
                follower.close("overflow")
            self._sent = ring.floor
        self._before = self._sent
        events = ring.after(self._sent)[: self._limits.page]
        # Prev along the chain is what a live connection was sent before.
        self._batch = Batch([(event.prev, event) for event in events])
        self._sent = self._batch.last
        self._todo = set(self._live)
        self._pieces.clear()
        for follower, cursor in list(self._early.items()):
            if cursor <= self._sent:
                del self._early[follower]
                self._attach(follower, cursor)
        self._shrink()

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

    def _shrink(self) -> None:
        """Drop the oldest events, but for a while not those that somebody still needs."""
        ring = self._ring
        assert ring is not None
        surplus = len(ring) - self._limits.ring
        if surplus <= 0:
            return
        excess = len(ring) - self._limits.ring - self._limits.deep
        if self._back is not None:
            surplus = excess
        else:
            needed = self._sent
            if self._deep_readers:
                lag = self._lag
                needed = min([needed, *(lag[one] for one in self._deep_readers if one in lag)])
            surplus = max(min(surplus, len(ring) - ring.count_after(needed)), excess)
        if surplus <= 0:
            return
        ring.drop(surplus)
        self._bottom = False
        self._pieces.clear()
        for follower, cursor in list(self._lag.items()):
            if cursor < ring.floor:
                self.leave(follower)
                follower.close("overflow")


def _extend(ring: Ring, events: Iterable[Event]) -> bool:
    """Append what the ring lacks; answer False where the links do not fit."""
    for event in events:
        if event.event_id > ring.last:
            if event.prev != ring.last:
                return False
            ring.append(event)
        elif event.event_id > ring.floor and not ring.holds(event.event_id):
            return False
    return True


def _ends_at(events: list[Event], floor: int) -> bool:
    """Tell whether the events are a chain whose newest id is `floor`."""
    expected = floor
    for event in reversed(events):
        if event.event_id != expected:
            return False
        expected = event.prev
    return bool(events)
