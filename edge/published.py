"""
Keys that somebody publishes, fetched when needed and kept for a while.

Whoever needs keys shares one fetch. A set is renewed in the background while it is still good, and
not used past a day. After a signature that no kept key made, a set is fetched again, at most once a
minute for all callers: forgeries cost the publisher nothing. A fetch that fails leaves the kept
keys in use until their day is over, and is not repeated for some seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

KEPT_FOR = 24 * 3600.0
RENEWED_AFTER = 12 * 3600.0
AGAIN_AFTER_SUCCESS = 60.0
AGAIN_AFTER_FAILURE = 5.0

Place = TypeVar("Place", bound=Hashable)
Key = TypeVar("Key")


@dataclass(slots=True)
class _Kept(Generic[Key]):
    keys: Sequence[Key] = ()
    fetched_at: float | None = None
    again_at: float = 0.0
    flight: asyncio.Task[None] | None = None


class Published(Generic[Place, Key]):
    """The kept sets, by where they come from. `fetch` returns none for an answer without keys."""

    def __init__(
        self,
        fetch: Callable[[Place], Awaitable[Sequence[Key]]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask_for = fetch
        self._clock = clock
        self._kept: dict[Place, _Kept[Key]] = {}

    async def keys(self, place: Place) -> tuple[Sequence[Key], bool]:
        """Return the keys, none if there are none to be had, and whether they were fetched now."""
        kept = self._kept.setdefault(place, _Kept())
        age = None if kept.fetched_at is None else self._clock() - kept.fetched_at
        if age is not None and age < KEPT_FOR:
            if age > RENEWED_AFTER:
                self._start(place, kept)
            return kept.keys, False
        return (kept.keys if await self._fetched(place, kept) else ()), True

    async def renewed(self, place: Place) -> Sequence[Key] | None:
        """Fetch the keys again and return them; None if that was done a moment ago, or failed."""
        kept = self._kept.setdefault(place, _Kept())
        return kept.keys if await self._fetched(place, kept) else None

    async def close(self) -> None:
        """End what is in flight."""
        flights = [kept.flight for kept in self._kept.values() if kept.flight is not None]
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def _fetched(self, place: Place, kept: _Kept[Key]) -> bool:
        """Wait for a fetch, if one may be made; return whether it brought keys."""
        flight = self._start(place, kept)
        if flight is None:
            return False
        before = kept.fetched_at
        # Whoever gives up waiting must not take the fetch away from the others.
        await asyncio.wait([flight])
        return kept.fetched_at != before

    def _start(self, place: Place, kept: _Kept[Key]) -> asyncio.Task[None] | None:
        if kept.flight is None and self._clock() >= kept.again_at:
            kept.flight = asyncio.create_task(self._fetch(place, kept))
        return kept.flight

    async def _fetch(self, place: Place, kept: _Kept[Key]) -> None:
        keys: Sequence[Key] = ()
        try:
            keys = await self._ask_for(place)
        finally:
            kept.flight = None
            now = self._clock()
            kept.again_at = now + (AGAIN_AFTER_SUCCESS if keys else AGAIN_AFTER_FAILURE)
            if keys:
                kept.keys, kept.fetched_at = keys, now
