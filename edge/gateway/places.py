"""
How many streams there may be, and how quickly they may come.

The caps are for one process; nobody who is in is ever sent away for a newcomer. Who finds no place
is told when to come back: 503 where the process has none, 429 where it is their own doing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from edge.buckets import Buckets, Rate
from edge.gateway.problems import Problem
from edge.gateway.store import Grant

_PROCESS = "all"


@dataclass(frozen=True, slots=True)
class Caps:
    """So many streams at once, and so many beginnings a second after a burst."""

    process: int = 20_000
    tenant: int = 20_000
    user: int = 50
    device: int = 20
    # 10,000 browsers come back within seconds when a gateway beside this one stops.
    process_connects: Rate = Rate(per_second=2000, burst=10_000)
    user_connects: Rate = Rate(per_second=5, burst=100)


class Places:
    """Counts the streams of this process."""

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._count = 0
        self._taken: Counter[Hashable] = Counter()
        self._connects = Buckets(caps.process_connects, remembered=1)
        self._user_connects = Buckets(caps.user_connects)

    def take(self, grant: Grant) -> None:
        """Hold a place for a stream, until `give_back`. Raises `Problem` when there is none."""
        caps = self._caps
        if self._count >= caps.process:
            raise Problem("full", retry_after=5.0)
        tenant, user, device = _keys(grant)
        if (
            self._taken[tenant] >= caps.tenant
            or self._taken[user] >= caps.user
            or self._taken[device] >= caps.device
        ):
            raise Problem("too_many_streams", retry_after=5.0)
        if wait := self._user_connects.take(f"{grant.tenant}/{grant.user}"):
            raise Problem("too_many_requests", retry_after=wait)
        if wait := self._connects.take(_PROCESS):
            raise Problem("full", retry_after=wait)
        self._count += 1
        for key in (tenant, user, device):
            self._taken[key] += 1

    def give_back(self, grant: Grant) -> None:
        """Give a place back."""
        self._count -= 1
        for key in _keys(grant):
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]


def _keys(grant: Grant) -> tuple[Hashable, Hashable, Hashable]:
    return grant.tenant, (grant.tenant, grant.user), (grant.tenant, grant.user, grant.session)
