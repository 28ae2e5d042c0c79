"""Refuses who sends too much, before anything costly is done for them."""

from __future__ import annotations

import time
from collections.abc import Callable

from edge.buckets import Buckets, Rate

BY_SOURCE = Rate(2000, 4000)
BY_PROVIDER = Rate(5000, 10_000)
REFUSED = Rate(5, 100)


class Flood:
    """
    The webhook edge's limits: on all requests by source and by provider, and a much lower one on
    refused signatures by source, so that guessing is slow and costs no hashing.
    """

    def __init__(
        self,
        *,
        by_source: Rate = BY_SOURCE,
        by_provider: Rate = BY_PROVIDER,
        refused: Rate = REFUSED,
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
