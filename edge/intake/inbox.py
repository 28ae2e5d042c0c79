"""
The inbox process (stage 10): has waiting callbacks applied, batch after batch.

Claiming, mapping, judging and applying are one transaction of `aivedio.process_inbox`; here is only
the pace. What passes by itself (a deadlock, a lock timeout, a partition that is not there yet) is
tried again after a pause; what condemns a row is settled in SQL, where the row ends dead.

Any number of these processes may run. Each owns its shards; two that own the same ones get in each
other's way, but do no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prometheus_client import Counter, Histogram

from edge import database
from edge.database import Database
from edge.doorbell import AGAIN, IDLE, Doorbell

ROLE = "aivedio_inbox"
SHARDS = range(8)

HANDLED = Counter("aivedio_inbox_rows_total", "Callbacks handled, by outcome.", ["outcome"])
BATCH_SECONDS = Histogram(
    "aivedio_inbox_batch_seconds",
    "Time of one process_inbox call that found work.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


@dataclass(frozen=True, slots=True)
class InboxBatch:
    """Mirror of the SQL type aivedio.inbox_batch."""

    claimed: int
    applied: int
    ignored: int
    retried: int
    dead: int


async def run(
    *,
    database_url: str,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
    shards: Sequence[int] = SHARDS,
    batch: int = 200,
) -> None:
    """Process the callbacks of `shards` until `stopping`; the batch in progress is finished."""
    bell = Doorbell(database_url, role=ROLE, channel="aivedio_inbox", shards=shards)
    async with database.connect(
        database_url, role=ROLE, max_size=1, statement_timeout=30.0, lock_timeout=2.0
    ) as db:

        async def look() -> float | None:
            return AGAIN if await process(db, shards, batch) else IDLE

        await bell.serve(look, stopping=stopping, ready=ready)


async def process(db: Database, shards: Sequence[int], batch: int) -> bool:
    """Process one batch. Return whether there may be more."""
    with BATCH_SECONDS.time():
        done = await db.one(InboxBatch, "process_inbox", p_shards=list(shards), p_limit=batch)
    for outcome in ("applied", "ignored", "retried", "dead"):
        HANDLED.labels(outcome).inc(getattr(done, outcome) or 0)
    return done.claimed > 0
