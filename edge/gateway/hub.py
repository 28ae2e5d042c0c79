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
R8   Writing: see `audience`.
R9   After a fork every connection is kept and gets one reset with the new head, and the answers to
     reads of the old chain are ignored.
R10  Connections that cannot be written to: see `audience`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple
from uuid import UUID

from edge.gateway.audience import Audience, Follower, Limits
from edge.gateway.frames import Event
from edge.gateway.ring import Ring

# No stream reaches it, so a read after it answers with the head and nothing else.
NOWHERE = 2**53 - 1


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


class _Cursor(NamedTuple):
    """Where a joining connection wants to go on, and the newest read when it came."""

    at: int | None
    number: int


class Hub:
    """One project's stream in this process."""

    __slots__ = (
        "_again", "_ahead", "_audience", "_back", "_behind", "_bottom", "_flight", "_forked",
        "_generation", "_limits", "_number", "_pending", "_read", "_wake", "project",
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
        # Who was not told a cursor yet: waits for a read that is newer, or older, or for the new
        # chain after a fork. Everybody else is in the audience.
        self._ahead: dict[Follower, _Cursor] = {}
        self._behind: dict[Follower, int] = {}
        self._forked: dict[Follower, str] = {}
        self._clear()

    def _clear(self) -> None:
        self._audience: Audience | None = None
        self._pending: dict[int, Event] = {}
        self._flight: int | None = None
        self._again = False
        self._back: Read | None = None
        # Whether nothing older than the ring is stored.
        self._bottom = False

    @property
    def last(self) -> int | None:
        """The newest id of the chain as far as it is known."""
        return None if self._audience is None else self._audience.ring.last

    @property
    def unsent(self) -> bool:
        """Whether events wait for a turn to be written."""
        return self._audience is not None and self._audience.unsent

    @property
    def backlog(self) -> int:
        """How many events wait for a turn to be written."""
        return 0 if self._audience is None else self._audience.backlog

    @property
    def followers(self) -> int:
        """How many connections it has, in whatever condition."""
        told = 0 if self._audience is None else len(self._audience)
        return told + len(self._ahead) + len(self._behind) + len(self._forked)

    # Messages

    def message(self, event: Event) -> None:
        """Take in a live event: a hint that may be a repeat, out of order, or no fact at all."""
        if self._audience is not None:
            ring = self._audience.ring
            if event.event_id <= ring.last:
                if event.event_id > ring.floor and not ring.holds(event.event_id):
                    self._need()
                return
            if event.prev == ring.last:
                ring.append(event)
                self._grown(self._audience)
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
        if self._audience is None or head == self._audience.ring.last:
            return
        if not self._audience.ring.holds(head) or (then is not None and head < then):
            self._need()

    def _grown(self, audience: Audience) -> None:
        ring = audience.ring
        while (waiting := self._pending.pop(ring.last, None)) is not None:
            ring.append(waiting)
        for prev, event in list(self._pending.items()):
            if event.event_id <= ring.last:
                del self._pending[prev]
        if audience.is_full:
            self._shrink(audience)
        self._settle_ahead()
        self._wake(self)

    # Reads

    def _need(self) -> None:
        if self._flight is not None or self._audience is None:
            self._again = True
            return
        self._ask("head", self._audience.ring.last, self._limits.page)

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
            audience = self._opened(read, page)
        else:
            assert self._audience is not None
            audience = self._audience
            if not page.complete or not _extend(audience.ring, page.events):
                self.collapse(page.reason or "gap")
                self._open(None)
                return
            self._again |= page.more
        self._grown(audience)
        if read.kind == "open" or not page.more:
            self._pending.clear()
            self._settle_ahead(read.number)
        if self._again:
            self._again = False
            self._need()

    def _opened(self, read: Read, page: Page) -> Audience:
        ring = Ring(read.cursor)
        # Too far back to hold, or no cursor of this chain: the head is a place to start all the
        # same, and rule 7 judges the cursor from there.
        if page.more or not page.complete or not _extend(ring, page.events):
            ring = Ring(page.last_event_id)
        audience = self._audience = Audience(ring, self._limits)
        forked, self._forked = self._forked, {}
        for follower, reason in forked.items():
            follower.reset(reason, ring.last)
            audience.attach(follower, ring.last)
        return audience

    def _answered_back(self, read: Read, page: Page) -> None:
        audience = self._audience
        assert audience is not None
        self._back = None
        if read.cursor == audience.ring.floor:
            older = page.events if _ends_at(page.events, read.cursor) else []
            audience.ring.extend_back(older)
            self._bottom = not (older and page.more)
        waiting, self._behind = self._behind, {}
        for follower, cursor in waiting.items():
            self._place(audience, follower, _Cursor(cursor, read.number), deep=True)
        self._shrink(audience)

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
        if self._audience is None:
            if self._flight is None:
                self._open(self._first_cursor())
            return
        if self._flight is None and self._again:
            self._again = False
            self._need()
        if self._behind:
            self._look_back(self._audience)

    def _first_cursor(self) -> int | None:
        if self._forked or not self._ahead:
            return None
        return next(iter(self._ahead.values())).at

    def _look_back(self, audience: Audience) -> None:
        if self._back is not None:
            return
        floor = audience.ring.floor
        # Ids rise by at least one, so this many events cannot end before the lowest cursor.
        distance = floor - min(self._behind.values())
        limit = min(distance, self._limits.ring + self._limits.deep - len(audience.ring))
        self._back = Read(self, "back", self._generation, self._number, floor, limit)
        self._read(self._back)

    def collapse(self, reason: str) -> None:
        """Forget the chain; every connection is kept until `retry`, and reset then (R9)."""
        told = self._audience.dismiss() if self._audience else []
        for group in (told, self._ahead, self._behind):
            self._forked.update(dict.fromkeys(group, reason))
        self._ahead.clear()
        self._behind.clear()
        self._generation += 1
        self._clear()

    def _shrink(self, audience: Audience) -> None:
        if audience.shrink(pinned=self._back is not None):
            self._bottom = False

    # Connections

    def prepare(self, cursor: int | None) -> None:
        """Open the hub, if it is not, for somebody who will join at about `cursor`."""
        if self._audience is None and self._flight is None:
            self._open(cursor)

    def join(self, follower: Follower, cursor: int | None) -> None:
        """Take in a connection that has everything up to `cursor`; None: from now on."""
        where = _Cursor(cursor, self._number)
        if self._audience is None:
            self._ahead[follower] = where
            self.prepare(self._first_cursor())
        else:
            self._place(self._audience, follower, where)

    def leave(self, follower: Follower) -> None:
        """Forget a connection. It is no mistake to say so twice."""
        if self._audience is not None:
            self._audience.leave(follower)
        for group in (self._ahead, self._behind, self._forked):
            group.pop(follower, None)

    def stalled(self, follower: Follower) -> None:
        """Take in that a connection became blocked by itself, not by a write of this hub."""
        if self._audience is not None:
            self._audience.stalled(follower)

    def writable(self, follower: Follower) -> None:
        """Take in that a blocked connection drained."""
        if self._audience is not None:
            self._audience.writable(follower)

    def _place(
        self,
        audience: Audience,
        follower: Follower,
        cursor: _Cursor,
        *,
        number: int | None = None,
        deep: bool = False,
    ) -> None:
        """Decide where a connection goes on. `number`: of a read to the end that just ended."""
        ring = audience.ring
        at = ring.last if cursor.at is None else cursor.at
        if ring.holds(at):
            follower.ready(at)
            audience.attach(follower, at, deep=deep)
        elif at > ring.last:
            if number is not None and number > cursor.number:
                _restart(audience, follower, "ahead")
            else:
                self._ahead[follower] = cursor
                self._need()
        elif at > ring.floor:
            _restart(audience, follower, "unknown")
        elif self._bottom:
            _restart(audience, follower, "pruned")
        elif audience.is_full:
            _restart(audience, follower, "too_old")
        else:
            self._behind[follower] = at
            self._look_back(audience)

    def _settle_ahead(self, number: int | None = None) -> None:
        if self._ahead:
            assert self._audience is not None
            waiting, self._ahead = self._ahead, {}
            for follower, cursor in waiting.items():
                self._place(self._audience, follower, cursor, number=number)

    # Writing

    def flush(self) -> None:
        """Start to write what came since the last batch, unless that one is still being written."""
        if self._audience is not None:
            self._audience.flush()
            self._shrink(self._audience)

    def step(self, most: int = 256) -> int:
        """Write to the next recipients, `most` of them, and return how many it were."""
        return 0 if self._audience is None else self._audience.step(most)


def _restart(audience: Audience, follower: Follower, reason: str) -> None:
    follower.reset(reason, audience.ring.last)
    audience.attach(follower, audience.ring.last)


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
