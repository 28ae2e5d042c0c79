"""Token buckets: so many a second, after a burst, for each of many keys."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """So many a second, after a burst."""

    per_second: float
    burst: float


class Buckets:
    """Token buckets by key; the least recently used keys are forgotten past `remembered`."""

    def __init__(
        self,
        rate: Rate,
        *,
        remembered: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._remembered = remembered
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, tokens: float = 1.0) -> float:
        """Take tokens. Return 0, or the seconds until they would be there; then none is taken."""
        now = self._clock()
        left = self._left(key, now)
        wait = max(0.0, (tokens - left) / self._rate.per_second)
        self._buckets[key] = (left if wait else left - tokens, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._remembered:
            self._buckets.popitem(last=False)
        return wait

    def wait(self, key: str) -> float:
        """Return the seconds until one token is there, taking none."""
        return max(0.0, (1.0 - self._left(key, self._clock())) / self._rate.per_second)

    def _left(self, key: str, now: float) -> float:
        left, at = self._buckets.get(key, (self._rate.burst, now))
        return min(self._rate.burst, left + (now - at) * self._rate.per_second)
