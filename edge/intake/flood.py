"""Refuses who sends too much, before anything costly is done for them."""

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


class Flood:
    """
    The webhook edge's limits: on all requests by source and by provider, and a much lower one on
    refused signatures by source, so that guessing is slow and costs no hashing.
    """

    def __init__(
        self,
        *,
        by_source: Rate = Rate(2000, 4000),
        by_provider: Rate = Rate(5000, 10_000),
        refused: Rate = Rate(5, 100),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._by_source = Buckets(by_source, clock=clock)
        self._by_provider = Buckets(by_provider, clock=clock)
        self._refused = Buckets(refused, clock=clock)

    def check(self, source: str, provider: str) -> float:
        """Count a request. Return 0 if it may go on, else the seconds to wait."""
        return (
            self._refused.wait(source)
            or self._by_source.take(source)
            or self._by_provider.take(provider)
        )

    def refused(self, source: str) -> None:
        """Count a refused signature."""
        self._refused.take(source)
