"""A hub's surroundings without I/O: a database, connections that check what they get, and reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from edge.gateway.audience import Batch, Limits
from edge.gateway.frames import Event
from edge.gateway.hub import Hub, Page, Read

PROJECT = UUID("0190c1aa-0000-7000-8000-000000000001")
SMALL = Limits(ring=4, deep=8, pending=3, page=2, piece=2, pieces=2)


def event(event_id: int, prev: int, task: int = 0, *, progress: bool = False) -> Event:
    return Event(event_id, prev, 1, bytes([task]), progress, b"{%d," % event_id)


class Store:
    """What PostgreSQL holds of one project, and what its two reads answer."""

    def __init__(self) -> None:
        self.drawn = 0
        self.head = 0
        self.rows: list[Event] = []
        self.tasks: dict[bytes, int] = {}
        self.history: dict[int, Event] = {}
        # With what a restore took away: a hub that has not noticed yet goes on from that.
        self.ever: list[Event] = []
        self.reads = 0

    def commit(self, task: int = 0, *, progress: bool = False, skip: int = 0) -> Event:
        """Append an event; other projects draw `skip` ids in between."""
        self.drawn += 1 + skip
        made = event(self.drawn, self.head, task, progress=progress)
        self.rows.append(made)
        self.head = made.event_id
        self.tasks[made.task] = made.event_id
        self.history[made.event_id] = made
        self.ever.append(made)
        return made

    def prune(self, count: int) -> None:
        del self.rows[:count]

    def restore(self, count: int) -> None:
        """Lose the newest events, as a restore does; new ids start far above the lost ones."""
        for lost in self.rows[-count:]:
            del self.history[lost.event_id]
        del self.rows[-count:]
        self.head = max(self.history, default=0)
        self.tasks = {made.task: made.event_id for made in self.history.values()}
        self.drawn += 1000

    def answer(self, read: Read) -> Page:
        self.reads += 1
        if read.kind == "back":
            found = [row for row in self.rows if row.event_id <= read.cursor]
            more = len(found) > read.limit
            return Page(True, None, self.head, more, found[-read.limit :])
        found = [row for row in self.rows if row.event_id > read.cursor]
        continues = found[0].prev == read.cursor if found else self.head == read.cursor
        if not continues:
            reason = "ahead" if read.cursor > self.head else "pruned"
            return Page(False, reason, self.head, False, [])
        more = len(found) > read.limit
        return Page(True, None, self.head, more, found[: read.limit])


@dataclass(eq=False)
class Connection:
    """A connection that fails the test as soon as its reader could have missed something."""

    store: Store
    blocked: bool = False
    block_at_write: bool = False
    position: int | None = None
    closed: str | None = None
    resets: list[str] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def ready(self, cursor: int) -> None:
        assert self.position is None and self.closed is None
        self.position = cursor

    def reset(self, reason: str, cursor: int) -> None:
        assert self.closed is None
        self.position = cursor
        self.resets.append(reason)

    def write(self, batch: Batch) -> None:
        assert self.closed is None and not self.blocked
        for prev, sent in batch.links:
            assert prev == self.position, "the reader cannot prove that nothing is missing"
            assert sent.event_id > prev, "ids rise"
            for left_out in self._between(prev, sent.event_id):
                assert left_out.progress_only, f"{left_out} was lost"
                assert any(
                    later.task == left_out.task and later.event_id > left_out.event_id
                    for later in self.store.ever
                ), f"{left_out} was left out, and nothing supersedes it"
            self.position = sent.event_id
            self.seen.append(sent.event_id)
        assert batch.last == self.position
        if self.block_at_write:
            self.blocked = True

    def close(self, reason: str) -> None:
        self.closed = reason

    def _between(self, low: int, high: int) -> list[Event]:
        return [made for made in self.store.history.values() if low < made.event_id < high]


def held(hub: Hub) -> int:
    """Return how many events a hub holds."""
    return 0 if hub._audience is None else len(hub._audience.ring)


class World:
    """A hub with a database; reads wait until the test answers them."""

    def __init__(self, limits: Limits = SMALL) -> None:
        self.store = Store()
        self.reads: list[Read] = []
        self.hub = Hub(PROJECT, self.reads.append, lambda hub: None, limits)

    @property
    def ring(self) -> int:
        """How many events the hub holds."""
        return held(self.hub)

    def connect(self, cursor: int | None) -> Connection:
        connection = Connection(self.store)
        self.hub.join(connection, cursor)
        return connection

    def answer(self, *, at: int = 0) -> Read:
        read = self.reads.pop(at)
        read.hub.answered(read, self.store.answer(read))
        return read

    def settle(self) -> None:
        """Answer every read and write everything, until nothing is left to do."""
        for _ in range(100):
            while self.reads:
                self.answer()
            self.write()
            if not self.reads and not self.hub.unsent:
                return
        raise AssertionError("the hub never comes to rest")

    def write(self) -> None:
        for _ in range(100):
            if not self.hub.unsent:
                return
            self.hub.flush()
            self.hub.step()
        raise AssertionError("the hub never stops writing")
