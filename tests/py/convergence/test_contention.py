"""Eight sessions tell the history of one task at once: nothing is lost, nothing happens twice."""

from __future__ import annotations

import random
from collections import Counter
from threading import Barrier, Thread

import psycopg
import pytest

from tests.py.conftest import Connect
from tests.py.convergence.invariants import broken
from tests.py.support.sessions import Connection, rows, value

SESSIONS = 8
# Twelve observations, each further than the one before: every one of them is a change.
HISTORY = (
    ("queued", None),
    *(("running", progress) for progress in range(5, 105, 10)),
    ("succeeded", None),
)
OBSERVE = """
select (aivedio.apply_observation(
  fixture.observation(
    fixture.id('attempt of task'), %s, %s, p_progress => %s, p_sequence => %s
  )
)).verdict
"""
SOURCES = ("webhook", "poll", "reconcile")


@pytest.fixture
def task(connect: Connect) -> Connection:
    """Return a session of a database with a submitted task whose progress is always written."""
    session = connect(autocommit=True)
    rows(session, "select fixture.task(p_status => 'submitted', p_version => 0)")
    rows(session, "select fixture.attempt('task', 'attempt of task')")
    rows(
        session,
        "insert into aivedio.project_settings values (fixture.id('project'), 'keep', 1, '0')",
    )
    return session


def tell(conninfo: str, orders: list[list[int]]) -> list[Counter[tuple[int, str]]]:
    """Let each session tell the history in its order, all at once; answer what each was told."""
    heard: list[Counter[tuple[int, str]]] = [Counter() for _ in orders]
    failed: list[BaseException] = []
    together = Barrier(len(orders))

    def live(number: int) -> None:
        source = SOURCES[number % len(SOURCES)]
        try:
            with psycopg.connect(
                conninfo, autocommit=True, options="-c statement_timeout=60s"
            ) as session:
                together.wait(60.0)
                for place in orders[number]:
                    status, progress = HISTORY[place]
                    verdict = value(session, OBSERVE, status, source, progress, place + 1)
                    heard[number][place, verdict] += 1
        except BaseException as error:
            failed.append(error)
            together.abort()

    threads = [Thread(target=live, args=(number,), daemon=True) for number in range(len(orders))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
        assert not thread.is_alive(), "a session hangs"
    assert failed == []
    return heard


def verdicts(heard: list[Counter[tuple[int, str]]]) -> Counter[tuple[int, str]]:
    return sum(heard, Counter[tuple[int, str]]())


@pytest.mark.both_versions
def test_a_history_of_twelve_told_by_eight_sessions(database: str, task: Connection) -> None:
    # Each tells it in its order, so no observation is overtaken before somebody has told it.
    heard = tell(database, [list(range(len(HISTORY))) for _ in range(SESSIONS)])

    answers = verdicts(heard)
    assert answers.total() == SESSIONS * len(HISTORY)
    for place in range(len(HISTORY)):
        assert answers[place, "applied"] == 1, f"observation {place} must change the task once"
    told = rows(
        task,
        "select task_version, public_payload ->> 'status', (public_payload ->> 'progress')::int"
        " from aivedio.task_events order by event_id",
    )
    assert told == [
        (1 + place, "provider_succeeded" if status == "succeeded" else status, progress)
        for place, (status, progress) in enumerate(HISTORY)
    ]
    assert value(task, "select version from aivedio.generation_tasks") == len(HISTORY)
    assert value(task, "select last_provider_seq from aivedio.task_attempts") == len(HISTORY)
    assert broken(task) == {}
    _nothing_is_uncounted(task, heard)


@pytest.mark.both_versions
def test_twelve_observations_in_any_order_from_eight_sessions(
    database: str, task: Connection
) -> None:
    dice = random.Random(8)
    orders = [dice.sample(range(len(HISTORY)), len(HISTORY)) for _ in range(SESSIONS)]
    heard = tell(database, orders)

    changes = sum(count for (_, verdict), count in verdicts(heard).items() if verdict == "applied")
    assert value(task, "select version from aivedio.generation_tasks") == changes
    assert value(task, "select count(*) from aivedio.task_events") == changes
    # Whatever overtook what, the end is the end.
    assert value(task, "select status from aivedio.generation_tasks") == "provider_succeeded"
    assert broken(task) == {}
    _nothing_is_uncounted(task, heard)


def _nothing_is_uncounted(task: Connection, heard: list[Counter[tuple[int, str]]]) -> None:
    """Every repeat by a callback is counted on the attempt, every change is in the ledger once."""
    repeated = sum(
        count
        for number, answers in enumerate(heard)
        if SOURCES[number % len(SOURCES)] == "webhook"
        for (_, verdict), count in answers.items()
        if verdict == "duplicate"
    )
    assert value(task, "select repeated_callbacks from aivedio.task_attempts") == repeated
    applied = sum(count for (_, verdict), count in verdicts(heard).items() if verdict == "applied")
    assert (
        value(
            task,
            "select count(distinct event_id) from aivedio.observations where verdict = 'applied'",
        )
        == applied
    )
