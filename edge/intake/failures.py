"""Counts refused callbacks in memory and reports them once a minute, however many there are."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import psycopg
from prometheus_client import Counter as Metric

from edge import errors, logs
from edge.database import Database
from edge.intake.signatures import Failure

logger = logs.get(__name__)

REFUSED = Metric(
    "aivedio_callbacks_refused_total", "Callbacks refused, by reason.", ["provider", "reason"]
)

# What an operator should hear of; the rest is a matter for the metrics.
REPORTED = frozenset(Failure) | {"too_large"}


@dataclass(frozen=True, slots=True)
class SignatureFailure:
    """Mirror of the SQL type aivedio.signature_failure."""

    provider: str
    class_: str
    failures: int


class Failures:
    """The counts since the last report. Keys are few: known providers times fixed reasons."""

    def __init__(self, db: Database, *, every: float = 60.0) -> None:
        self._db = db
        self._every = every
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, provider: str, reason: str) -> None:
        """Count one refusal."""
        REFUSED.labels(provider, reason).inc()
        if reason in REPORTED:
            self._counts[provider, reason] += 1

    async def run(self) -> None:
        """Report about once a minute, until cancelled."""
        while True:
            await asyncio.sleep(self._every * random.uniform(0.8, 1.2))
            await self.report()

    async def report(self) -> None:
        """Report now. What could not be reported is kept for the next time."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        for (provider, reason), failures in counts.items():
            logger.warning("callbacks refused", provider=provider, reason=reason, failures=failures)
        try:
            await self._db.value(
                "report_signature_failures",
                p_failures=[
                    SignatureFailure(provider, reason, failures)
                    for (provider, reason), failures in counts.items()
                ],
            )
        except (errors.EdgeError, psycopg.Error) as error:
            logger.warning("refusals not reported", **errors.facts(error))
            self._counts.update(counts)


COMPOSITES: dict[str, type[Any]] = {"signature_failure": SignatureFailure}
