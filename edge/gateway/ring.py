"""The stretch of one project's event chain that a hub holds in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from edge.gateway.frames import Event


class Ring:
    """
    Consecutive events of one chain, oldest first.

    `floor` is the id before the oldest event held, so `floor` and the id of every held event are
    the cursors that can be continued from here. With nothing held, `floor` is also `last`.
    """

    __slots__ = ("_events", "_ids", "_start", "floor", "last")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.last = floor
        self._events: list[Event] = []
        self._ids: list[int] = []
        # Where the oldest event stands: dropping moves it, and the lists shrink now and then.
        self._start = 0

    def __len__(self) -> int:
        """Return how many events are held."""
        return len(self._ids) - self._start

    def holds(self, cursor: int) -> bool:
        """Tell whether a reader at `cursor` can go on from here."""
        if cursor == self.floor:
            return True
        at = bisect_right(self._ids, cursor, self._start)
        return at > self._start and self._ids[at - 1] == cursor

    def after(self, cursor: int) -> list[Event]:
        """Return the events past `cursor`, which must be held."""
        return self._events[bisect_right(self._ids, cursor, self._start) :]

    def count_after(self, cursor: int) -> int:
        """Return how many events are held past `cursor`."""
        return len(self._ids) - bisect_right(self._ids, cursor, self._start)

    def append(self, event: Event) -> None:
        """Add the event that follows `last`."""
        assert event.prev == self.last, (event.prev, self.last)
        self._events.append(event)
        self._ids.append(event.event_id)
        self.last = event.event_id

    def extend_back(self, events: Iterable[Event]) -> None:
        """Put older events, which end at `floor`, in front."""
        older = list(events)
        if not older:
            return
        assert older[-1].event_id == self.floor, (older[-1].event_id, self.floor)
        self._events[: self._start] = older
        self._ids[: self._start] = [event.event_id for event in older]
        self._start = 0
        self.floor = older[0].prev

    def drop(self, count: int) -> None:
        """Forget the `count` oldest events."""
        if count <= 0:
            return
        self._start += count
        self.floor = self._ids[self._start - 1]
        if self._start > 64 and self._start > len(self):
            del self._events[: self._start]
            del self._ids[: self._start]
            self._start = 0
        else:
            # Their bytes must not wait for the lists to shrink.
            for gone in range(self._start - count, self._start):
                self._events[gone] = _DROPPED


_DROPPED = Event(0, 0, 0, b"", False, b"")
