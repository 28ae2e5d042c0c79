"""Counts of refused callbacks outlive whatever the database says to a report."""

from __future__ import annotations

from typing import Any, cast

import psycopg
import pytest

from edge import errors
from edge.database import Database
from edge.intake.failures import Failures


class Refusing:
    """A database that fails once, then remembers what it is told."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.told: list[Any] = []

    async def value(self, _function: str, *, p_failures: list[Any]) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.told += [(one.provider, one.class_, one.failures) for one in p_failures]


@pytest.mark.parametrize(
    "error", [errors.DatabaseDown("no answer in time"), psycopg.errors.InternalError_("a defect")]
)
async def test_a_report_that_fails_is_made_up_for(error: Exception) -> None:
    """Nor does it end the process, which goes on taking in callbacks."""
    db = Refusing(error)
    failures = Failures(cast(Database, db))
    failures.add("replicate", "mismatch")
    await failures.report()
    failures.add("replicate", "mismatch")
    await failures.report()
    assert db.told == [("replicate", "mismatch", 2)]
