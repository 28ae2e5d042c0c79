"""
The upkeep loop (stage 90): calls `aivedio.upkeep()` about once a minute.

All that is due, and how much of it one call may do, is decided in SQL. Each call makes at most
one change of the schema, so while a call reports that it did something the next one follows soon.
Any number of these processes may run; the function lets one work at a time.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from prometheus_client import Counter, Gauge

from edge import database, errors, logs
from edge.backoff import Backoff, pause
from edge.process import Ready

logger = logs.get(__name__)

ROUNDS = Counter("aivedio_upkeep_rounds_total", "Calls of aivedio.upkeep().", ["outcome"])
LAST = Gauge("aivedio_upkeep_last_success_seconds", "Unix time of the last successful round.")

EVERY = 60.0
SOON = 1.0
_STATEMENT_TIMEOUT = 60.0


async def run(
    database_url: str, *, stopping: asyncio.Event, ready: Ready, every: float = EVERY
) -> None:
    """Keep the database tidy until `stopping`; ready after the first successful round."""
    backoff = Backoff(first=1.0, cap=every)
    async with database.connect(
        database_url, role="aivedio_operator", max_size=1, statement_timeout=_STATEMENT_TIMEOUT
    ) as db:
        while not stopping.is_set():
            try:
                done = await db.value("upkeep")
            except errors.EdgeError as error:
                ROUNDS.labels("failed").inc()
                logger.warning("upkeep failed", kind=type(error).__name__, code=error.code)
                await pause(backoff.next(), stopping)
                continue
            backoff.reset()
            ROUNDS.labels("done").inc()
            LAST.set_to_current_time()
            ready(True)
            logger.info("upkeep done", **_fields(done))
            await pause(_until_next(done, every), stopping)


def _until_next(done: Any, every: float) -> float:
    more = isinstance(done, dict) and bool(done.get("more"))
    return (SOON if more else every) * random.uniform(0.8, 1.2)


def _fields(done: Any) -> dict[str, Any]:
    return {"done": done} if done else {}
