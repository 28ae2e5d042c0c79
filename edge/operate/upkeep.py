"""
The upkeep loop (stage 90): calls each step of `aivedio.upkeep(step)` about once a minute.

What a step does, and how much of it in one call, is decided in SQL. A call makes at most one
change of the schema, so a step that got something done is called again at once, a few times. Any
number of these processes may run: the function lets one at a time work.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from prometheus_client import Counter, Gauge

from edge import database, errors, logs
from edge.backoff import Backoff, pause
from edge.database import Database
from edge.operate import gauges
from edge.process import Ready

logger = logs.get(__name__)

STEPS: Final = (
    "task_events",
    "outbox_events",
    "observations",
    "purge",
    "media",
    "streams",
    "callbacks",
    "alarms",
)
EVERY: Final = 60.0
# How often one step may follow itself within a round.
REPEATS: Final = 8
_STATEMENT_TIMEOUT = 60.0
_BATCHES: Final = {"purge": 1000, "streams": 2000}

CALLS = Counter("aivedio_upkeep_calls_total", "Calls of aivedio.upkeep().", ["step", "outcome"])
LAST = Gauge("aivedio_upkeep_last_success_seconds", "Unix time of the last full round.")


async def run(
    database_url: str, *, stopping: asyncio.Event, ready: Ready, every: float = EVERY
) -> None:
    """Keep the database tidy until `stopping`; ready while rounds succeed."""
    backoff = Backoff(first=1.0, cap=every)
    async with database.connect(
        database_url,
        role="aivedio_operator",
        max_size=2,
        statement_timeout=_STATEMENT_TIMEOUT,
        lock_timeout=1.0,
    ) as db:
        async with asyncio.TaskGroup() as work:
            work.create_task(gauges.run(db, stopping))
            while not stopping.is_set():
                if await _round(db, stopping):
                    backoff.reset()
                    LAST.set_to_current_time()
                    ready(True)
                    wait = every * random.uniform(0.8, 1.2)
                else:
                    ready(False)
                    wait = backoff.next()
                await pause(wait, stopping)


async def _round(db: Database, stopping: asyncio.Event) -> bool:
    """Do every step; one that fails does not keep the others from their turn."""
    succeeded = True
    for step in STEPS:
        try:
            await _step(db, step, stopping)
        except errors.EdgeError as error:
            succeeded = False
            CALLS.labels(step, "failed").inc()
            logger.warning("upkeep failed", step=step, kind=type(error).__name__, code=error.code)
    return succeeded


async def _step(db: Database, step: str, stopping: asyncio.Event) -> None:
    for _ in range(REPEATS):
        answer = await db.value("upkeep", p_step=step)
        CALLS.labels(step, "done" if answer["ran"] else "elsewhere").inc()
        if stopping.is_set() or not _has_more(step, answer.get("result")):
            return


def _has_more(step: str, result: Any) -> bool:
    """Partition steps answer what they did, most others how much; a full batch has more to come."""
    if isinstance(result, str):
        return result not in ("nothing", "kept")
    if step in ("purge", "streams"):
        return isinstance(result, int) and result >= _BATCHES[step]
    return step == "media" and bool(result)
