"""
Calls in flight: each claimed request is sent once, in a task of its own, and its outcome settled.

The number of calls is bounded by `slots`; whoever claims must not claim more than `free`. An
outcome is too dear to lose to a moment without the database, so settling is repeated for a while;
the lease's token makes a late or second settlement harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from prometheus_client import Counter, Gauge

from edge import errors, logs
from edge.backoff import Backoff
from edge.database import Database
from edge.intake import outcomes
from edge.intake.outcomes import Outcome
from edge.intake.provider_http import ProviderHttp, ProviderRequest
from edge.listener import log_failure

logger = logs.get(__name__)

IN_FLIGHT = Gauge(
    "aivedio_provider_calls_in_flight", "Requests to providers in flight.", ["request"]
)
SETTLED = Counter("aivedio_provider_settled_total", "Outcomes settled.", ["request", "verdict"])


@dataclass(frozen=True, slots=True)
class Applied:
    """Mirror of the SQL type aivedio.applied."""

    verdict: str
    task_id: UUID | None
    attempt_id: UUID | None


class Calls:
    """Sends one kind of request (`poll`, `submit`, `cancel`) and settles by `settle_<kind>`."""

    def __init__(
        self,
        db: Database,
        http: ProviderHttp,
        name: str,
        *,
        slots: int,
        settle_within: float,
        freed: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._http = http
        self._name = name
        self._slots = slots
        self._settle_within = settle_within
        self._freed = freed
        self._running: set[asyncio.Task[None]] = set()
        self._was_full = False

    @property
    def free(self) -> int:
        """How many more calls may start now. If none, `freed` is called once one ends."""
        free = self._slots - len(self._running)
        self._was_full = self._was_full or free <= 0
        return free

    def start(self, request: ProviderRequest) -> asyncio.Task[None]:
        """Send a request without waiting for its answer."""
        task = asyncio.create_task(self._call(request))
        self._running.add(task)
        IN_FLIGHT.labels(self._name).set(len(self._running))
        task.add_done_callback(self._ended)
        return task

    async def finish(self) -> None:
        """Wait for the calls in flight; each is bounded by its timeout and by settling's."""
        while self._running:
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        IN_FLIGHT.labels(self._name).set(len(self._running))
        if self._was_full:
            self._was_full = False
            self._freed()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            log_failure("provider call failed", error, request=self._name)

    async def _call(self, request: ProviderRequest) -> None:
        outcome = await self._http.send(request, self._name)
        await self._settle(request, outcome)

    async def _settle(self, request: ProviderRequest, outcome: Outcome) -> None:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._settle_within
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                applied = await self._db.one(
                    Applied,
                    f"settle_{self._name}",
                    p_attempt=request.attempt_id,
                    p_token=request.lease_token,
                    p_outcome=outcome,
                )
            except errors.BadValue:
                if outcome["kind"] == "malformed":
                    raise
                # JSON that PostgreSQL cannot hold, such as \u0000 in a text.
                outcome = outcomes.malformed(outcome.get("http_status", 0), b"")
            except errors.Unavailable as error:
                wait = backoff.next()
                if loop.time() + wait > give_up_at:
                    logger.error(
                        "outcome not settled",
                        request=self._name,
                        attempt_id=str(request.attempt_id),
                        trace_id=request.trace_id,
                        **errors.facts(error),
                    )
                    SETTLED.labels(self._name, "lost").inc()
                    return
                await asyncio.sleep(wait)
            else:
                SETTLED.labels(self._name, applied.verdict).inc()
                return
