"""
The poll process (stage 20): asks providers about the attempts that SQL says are due.

Whom to ask, how often and within which quotas is decided by `aivedio.claim_polls`; what an answer
means by `aivedio.settle_poll`. A query never submits. Any number of these processes may run: a
lease and its token keep one attempt in one hand.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta

from edge import database
from edge.database import Database
from edge.doorbell import AGAIN, IDLE, Doorbell
from edge.intake.calls import Calls
from edge.intake.provider_http import ProviderHttp, ProviderRequest
from edge.intake.secrets import Secrets

ROLE = "aivedio_poll"

# Polls that are due but not given out wait for a quota, whose buckets hold little more than a tenth
# of a second's worth, or for another claimer.
HELD_BACK = (0.05, 0.1)

# An outcome later than the lease is refused anyway.
SETTLE_WITHIN = 45.0


class Polling:
    """Claims polls and starts them, as many as there are slots."""

    def __init__(self, db: Database, calls: Calls, worker: str, *, batch: int = 50) -> None:
        self._db = db
        self._calls = calls
        self._worker = worker
        self._batch = batch

    async def look(self) -> float | None:
        """Start what is due. Return when to look again."""
        limit = min(self._batch, self._calls.free)
        if limit <= 0:
            return IDLE
        requests = await self._db.rows(
            ProviderRequest, "claim_polls", p_worker=self._worker, p_limit=limit
        )
        for request in requests:
            self._calls.start(request)
        if len(requests) == limit:
            return AGAIN
        due_in: timedelta | None = await self._db.value("next_poll_in")
        if due_in is None:
            return IDLE
        return max(due_in.total_seconds(), random.uniform(*HELD_BACK))


async def run(
    *,
    database_url: str,
    worker: str,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
    slots: int = 64,
) -> None:
    """Poll until `stopping`; calls in flight are finished and settled."""
    bell = Doorbell(database_url, role=ROLE, channel="aivedio_poll", safety=(1.0, 2.0))
    async with (
        database.connect(database_url, role=ROLE, max_size=4, statement_timeout=10.0) as db,
        ProviderHttp(Secrets(), reuse=True, connections=slots) as http,
    ):
        calls = Calls(db, http, "poll", slots=slots, settle_within=SETTLE_WITHIN, freed=bell.shake)
        try:
            await bell.serve(Polling(db, calls, worker).look, stopping=stopping, ready=ready)
        finally:
            await calls.finish()
