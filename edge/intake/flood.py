"""Refuses who sends too much, before anything costly is done for them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from edge.buckets import Buckets, Rate

BY_SOURCE = Rate(2000, 4000)
BY_PROVIDER = Rate(5000, 10_000)
REFUSED = Rate(5, 100)
CHALLENGES = Rate(20, 100)
# How many good senders are remembered, and for how long.
KNOWN_AT_MOST = 10_000
KNOWN_FOR = 3600.0


class Flood:
    """
    The webhook edge's limits.

    By source on all requests, and a much lower one on refused ones, so that guessing is slow and
    costs no hashing. By provider only on what is verified: whoever forges callbacks must not use up
    what the real ones need. A source that delivered a verified callback lately is not shut out for
    refused ones: anybody may have a provider's own servers call us with signatures that are wrong.
    """

    def __init__(
        self,
        *,
        by_source: Rate = BY_SOURCE,
        by_provider: Rate = BY_PROVIDER,
        refused: Rate = REFUSED,
        challenges: Rate = CHALLENGES,
        known_for: float = KNOWN_FOR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._by_source = Buckets(by_source, clock=clock)
        self._by_provider = Buckets(by_provider, clock=clock)
        self._refused = Buckets(refused, clock=clock)
        self._challenges = Buckets(challenges, clock=clock)
        self._known_for = known_for
        self._clock = clock
        self._known: OrderedDict[str, float] = OrderedDict()

    def shut_out(self, source: str) -> float:
        """Return 0, or how many seconds a source must wait that was refused too often."""
        wait = self._refused.wait(source)
        if wait and self._clock() < self._known.get(source, 0.0):
            return 0.0
        return wait

    def check(self, source: str) -> float:
        """Count a request. Return 0 if it may go on, else the seconds to wait."""
        return self.shut_out(source) or self._by_source.take(source)

    def admit(self, source: str, provider: str, *, verified: bool) -> float:
        """Count a callback that is about to be stored. Return 0, or the seconds to wait."""
        if verified:
            self._known[source] = self._clock() + self._known_for
            self._known.move_to_end(source)
            if len(self._known) > KNOWN_AT_MOST:
                self._known.popitem(last=False)
        return self._by_provider.take(provider)

    def challenge(self, source: str) -> float:
        """Count a registration challenge. Return 0 if it may be answered, or seconds to wait."""
        return self._challenges.take(source)

    def refused(self, source: str) -> None:
        """Count a refused signature, or a token that nobody was given."""
        self._refused.take(source)
