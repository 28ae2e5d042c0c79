"""
The submit process (stage 20): hands tasks to providers, and cancel requests.

A submission is sent at most once. `aivedio.claim_submits` commits "submitting" before it hands a
request out, and hands none out twice; here it is sent once, on a connection of its own. Whatever is
not clearly an answer is settled as unknown, which opens a case and is never repeated. A process
that dies in between leaves a lease that runs out to the same end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from edge import database
from edge.database import Database
from edge.doorbell import AGAIN, IDLE, Doorbell
from edge.intake.calls import Calls
from edge.intake.provider_http import ProviderHttp, ProviderRequest
from edge.intake.secrets import Secrets

ROLE = "aivedio_submit"

# The answer to a submission is worth waiting for a database: without it the outcome is unknown.
SETTLE_WITHIN = 600.0
SETTLE_CANCEL_WITHIN = 45.0


class Submitting:
    """Claims submissions and cancels and starts them, as many as there are slots."""

    def __init__(
        self,
        db: Database,
        submits: Calls,
        cancels: Calls,
        *,
        worker: str,
        callback_url: str,
        batch: int = 20,
    ) -> None:
        self._db = db
        self._submits = submits
        self._cancels = cancels
        self._worker = worker
        self._callback_url = callback_url
        self._batch = batch

    async def look(self) -> float | None:
        """Start what is due. Return when to look again."""
        more = await self._claim(self._submits, "claim_submits", p_callback_base=self._callback_url)
        more |= await self._claim(self._cancels, "claim_cancels")
        return AGAIN if more else IDLE

    async def _claim(self, calls: Calls, function: str, **arguments: object) -> bool:
        """Start one batch. Return whether there may be more that could start now."""
        limit = min(self._batch, calls.free)
        if limit <= 0:
            return False
        requests = await self._db.rows(
            ProviderRequest, function, p_worker=self._worker, p_limit=limit, **arguments
        )
        for request in requests:
            calls.start(request)
        return len(requests) == limit


async def run(
    *,
    database_url: str,
    callback_url: str,
    worker: str,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
    slots: int = 32,
) -> None:
    """Submit and cancel until `stopping`; calls in flight are finished and settled."""
    bell = Doorbell(database_url, role=ROLE, channel="aivedio_submit")
    async with (
        database.connect(database_url, role=ROLE, max_size=4, statement_timeout=10.0) as db,
        ProviderHttp(Secrets(), reuse=False, connections=2 * slots) as http,
    ):
        submits = Calls(
            db, http, "submit", slots=slots, settle_within=SETTLE_WITHIN, freed=bell.shake
        )
        cancels = Calls(
            db, http, "cancel", slots=slots, settle_within=SETTLE_CANCEL_WITHIN, freed=bell.shake
        )
        work = Submitting(db, submits, cancels, worker=worker, callback_url=callback_url)
        try:
            await bell.serve(work.look, stopping=stopping, ready=ready)
        finally:
            await asyncio.gather(submits.finish(), cancels.finish())
