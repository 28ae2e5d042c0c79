"""
The tests of the state machine notice it when the state machine changes.

Every row of task_transitions and every condition of the functions that judge is altered, one at a
time, in a scratch database; then some test of a fast set must fail: a pgTAP file of stage 40, or
else the model over a fixed set of histories. What nobody notices is listed, and fails this test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import Phase, settings

from tests.py.conftest import Connection
from tests.py.convergence.mutants import Mutant, mutants
from tests.py.convergence.payloads import prepare as prepare_model
from tests.py.convergence.test_model import SHORT, live
from tests.py.support import prove
from tests.py.support.clusters import Cluster

MODEL = settings(SHORT, max_examples=60, stateful_step_count=40, phases=[Phase.generate])
FIRST = ("40_matrix.sql", "40_attempt_memory.sql", "40_apply_observation.sql")

# What cannot be noticed, because it changes nothing, each with the reason.
SUCCEEDED = "the current attempt of such a task has succeeded: the same end is a duplicate anyway"
EQUIVALENT = {
    **{
        f"task_transitions: {status}, succeeded: terminal None becomes duplicate None": SUCCEEDED
        for status in ("provider_succeeded", "processing_media", "ready")
    },
    "_judge: p_task.cancel_requested_at is not null → true (2)": (
        "without a cancel request the project's settings are not read, so nothing is discarded"
    ),
    "_apply_locked: v_attempt.submit_state = 'unknown' → true": (
        "a case of a lost submission is open only while its outcome is unknown"
    ),
}

pytestmark = pytest.mark.timeout(3600)


class Scratch:
    """A database that is altered and put back, and the tests that look at it."""

    def __init__(self, cluster: Cluster, database: str, session: Connection) -> None:
        self._cluster = cluster
        self._database = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
        self._session = session
        self._psql = prove.prepare(cluster, str(self._database))
        files = sorted(prove.SQL.glob("40_*.sql"), key=lambda path: path.name not in FIRST)
        self._files = files

    def is_noticed(self, mutant: Mutant | None) -> bool:
        """Return whether a test fails with the alteration; None: without any."""
        if mutant is None:
            return self._fails()
        self._run(mutant.apply)
        try:
            return self._fails()
        finally:
            self._run(mutant.undo)

    def _run(self, statements: str) -> None:
        self._session.execute(statements.encode())
        self._session.commit()

    def _fails(self) -> bool:
        return any(self._proves_wrong(path) for path in self._files) or self._is_disagreed()

    def _proves_wrong(self, path: Path) -> bool:
        ended = prove.run_files(self._cluster, str(self._database), self._psql, [path])
        return ended.returncode != 0

    def _is_disagreed(self) -> bool:
        try:
            live(self._session, MODEL)
        except (AssertionError, psycopg.Error, ExceptionGroup):
            return True
        finally:
            self._session.rollback()
        return False


@pytest.fixture
def scratch(cluster: Cluster, database: str, session: Connection) -> Iterator[Scratch]:
    scratch = Scratch(cluster, database, session)
    prepare_model(session)
    session.commit()
    yield scratch
    assert not scratch.is_noticed(None), "a test fails without any alteration"


def survivors(scratch: Scratch, some: list[Mutant]) -> list[str]:
    return [
        mutant.name
        for mutant in some
        if mutant.name not in EQUIVALENT and not scratch.is_noticed(mutant)
    ]


def test_some_alterations_are_noticed(scratch: Scratch) -> None:
    assert survivors(scratch, mutants()[7::29]) == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_every_alteration_is_noticed(scratch: Scratch, part: int) -> None:
    assert survivors(scratch, mutants()[part::4]) == []


def test_what_cannot_be_noticed_exists() -> None:
    assert set(EQUIVALENT) <= {mutant.name for mutant in mutants()}
