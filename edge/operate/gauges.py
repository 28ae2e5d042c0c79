"""
What waits where, as metrics: `aivedio.pipeline_status()`, read now and then.

Published by whoever does upkeep. Several processes may: each reads the same database, so an
alert takes the greatest value, never the sum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client import Gauge

from edge import errors, logs
from edge.backoff import Backoff, pause
from edge.database import Database

logger = logs.get(__name__)

EVERY: Final = 15.0

BACKLOG = Gauge("aivedio_backlog", "What waits in a stage, in rows or messages.", ["stage"])
OLDEST = Gauge("aivedio_backlog_oldest_seconds", "How long the oldest of it waits.", ["stage"])
TASKS = Gauge("aivedio_tasks", "Tasks that have not ended.", ["status"])
ALARMS = Gauge("aivedio_alarms", "Open alarms.", ["kind"])
CASES = Gauge("aivedio_cases", "Open reconciliation cases.", ["kind"])
COVERAGE = Gauge(
    "aivedio_callback_coverage",
    "Share of a provider's latest ends that callbacks told.",
    ["provider"],
)
DELAY = Gauge(
    "aivedio_callback_delay_seconds",
    "How long after the provider's own time its callbacks came.",
    ["provider", "quantile"],
)
CIRCUITS = Gauge(
    "aivedio_circuits_open",
    "1 while a credential of a provider is not used freely.",
    ["credential"],
)
QUOTAS = Gauge("aivedio_quotas_blocked", "Token buckets of polls that wait after a refusal.")
READ_AT = Gauge("aivedio_status_read_seconds", "Unix time at which these were read.")


async def run(db: Database, stopping: asyncio.Event, every: float = EVERY) -> None:
    """Publish until `stopping`. A database that is away leaves the last values, and READ_AT."""
    backoff = Backoff(first=1.0, cap=every)
    while not stopping.is_set():
        try:
            publish(await db.value("pipeline_status"))
            READ_AT.set_to_current_time()
            backoff.reset()
            wait = every
        except errors.EdgeError as error:
            logger.warning("status not read", kind=type(error).__name__, code=error.code)
            wait = backoff.next()
        await pause(wait, stopping)


def publish(status: Mapping[str, Any]) -> None:
    """Set every gauge to what a status says; what it does not mention any more is gone."""
    _set(BACKLOG, dict(_waiting(status)))
    _set(OLDEST, dict(_oldest(status)))
    _set(TASKS, status["tasks"])
    _set(CIRCUITS, dict.fromkeys(status["circuits"], 1))
    QUOTAS.set(status["quotas_blocked"])
    _set(COVERAGE, {name: known["coverage"] for name, known in status["callbacks"].items()})
    DELAY.clear()
    for name, known in status["callbacks"].items():
        for quantile, seconds in (("0.5", known["delay_p50_s"]), ("0.95", known["delay_p95_s"])):
            if seconds is not None:
                DELAY.labels(name, quantile).set(seconds)
    kinds: dict[str, int] = {}
    for alarm in status["alarms"]:
        kinds[alarm["kind"]] = kinds.get(alarm["kind"], 0) + 1
    _set(ALARMS, kinds)
    _set(CASES, status["cases"])


def _waiting(status: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield "inbox", status["inbox"]["pending"]
    yield "inbox_retry", status["inbox"]["retry"]
    yield "inbox_dead", status["inbox_dead"]
    yield "submit", status["submits_due"]
    yield "poll_due", status["polls"]["due"]
    yield "poll", status["polls"]["scheduled"]
    yield "outbox", status["outbox"]["pending"]
    yield "outbox_parked", status["outbox_parked"]
    for group, known in status["bus"].items():
        yield f"bus_{group}", known["waiting"]
        yield f"bus_{group}_dead", known["dead"]
    for operation, count in status["media"].items():
        yield f"media_{operation}", count


def _oldest(status: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    # Nothing waits: that is an age of zero, not a missing one.
    yield "inbox", status["inbox"]["oldest_s"] or 0.0
    yield "outbox", status["outbox"]["oldest_s"] or 0.0
    for group, known in status["bus"].items():
        yield f"bus_{group}", known.get("oldest_s") or 0.0


def _set(gauge: Gauge, values: Mapping[str, float]) -> None:
    gauge.clear()
    for label, value in values.items():
        gauge.labels(label).set(value)
