"""
What happens to a job at the same time, in every order, by sessions that wait for each other.

Orders that must come to the same end do; where the first decides, it does. There is no deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

import pytest

from tests.py.conftest import Connect, Connection
from tests.py.convergence.invariants import broken
from tests.py.convergence.payloads import prepare
from tests.py.convergence.steps import Job, Step, run_in_turns

Begin = Callable[[Connection], tuple[Job, dict[str, Step]]]
SUBMITTED = ("accepted", True)

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def outside(connect: Connect) -> Iterator[Connection]:
    """Return a session that commits each statement; in the end every invariant holds."""
    session = connect(autocommit=True)
    prepare(session)
    yield session
    assert broken(session) == {}


def orders(
    database: str,
    connect: Connect,
    outside: Connection,
    begin: Begin,
    sessions: int,
) -> Iterator[tuple[tuple[str, ...], dict[str, object]]]:
    """Run the steps of a history in every order; yield the order as it came and where it ended."""
    workers = [connect() for _ in range(sessions)]
    _, named = begin(outside)
    for order in permutations(named):
        job, steps = begin(outside)
        came = run_in_turns(database, workers, [steps[name] for name in order])
        yield tuple(order[number] for number in came), job.ends()
        job.close()


def end(
    status: str,
    attempt: tuple[str, str, bool],
    *,
    error: str | None = None,
    asked: bool = False,
    cases: tuple[str, ...] = (),
    before: tuple[tuple[str, str, bool], ...] = (),
) -> dict[str, object]:
    return {
        "task": (status, error),
        "cancel asked": asked,
        "attempts": [*before, attempt],
        "cases": list(cases),
    }


@pytest.mark.parametrize("sessions", [2, 3])
def test_around_the_answer_to_a_submission(
    database: str, connect: Connect, outside: Connection, sessions: int
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside)
        return job, {
            "submission commits": job.accept,
            "early callback": job.call_back("running"),
            "duplicate callback": job.call_back("running"),
            "lease loss": job.lose_submit,
        }

    for order, ended in orders(database, connect, outside, begin, sessions):
        assert ended == end("running", ("running", *SUBMITTED)), order


def test_around_a_submission_without_an_answer(
    database: str, connect: Connect, outside: Connection
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside)
        return job, {
            "timeout": job.submit_times_out,
            "early callback": job.call_back("queued"),
            "duplicate callback": job.call_back("queued"),
            "lease loss": job.lose_submit,
        }

    for order, ended in orders(database, connect, outside, begin, 2):
        assert ended == end("queued", ("queued", *SUBMITTED)), order


def test_around_a_cancellation_before_the_answer(
    database: str, connect: Connect, outside: Connection
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside)
        return job, {
            "submission commits": job.accept,
            "cancel": job.cancel,
            "early callback": job.call_back("running"),
            "lease loss": job.lose_submit,
        }

    for order, ended in orders(database, connect, outside, begin, 2):
        expected = end("cancel_requested", ("running", *SUBMITTED), asked=True)
        assert ended == expected, order


@pytest.mark.parametrize("sessions", [2, 3])
def test_around_the_end_of_a_job(
    database: str, connect: Connect, outside: Connection, sessions: int
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside).submitted()
        lost = job.poll("running")
        job.hold_poll()
        return job, {
            "callback done": job.call_back("succeeded"),
            "late callback": job.call_back("running", pct=70),
            "poll done": job.poll("succeeded"),
            "poll running, lease lost": lost,
        }

    for order, ended in orders(database, connect, outside, begin, sessions):
        assert ended == end("provider_succeeded", ("succeeded", *SUBMITTED)), order


@pytest.mark.parametrize("answer", ["running", None])
def test_around_a_poll_that_saw_less(
    database: str, connect: Connect, outside: Connection, answer: str | None
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside).submitted()
        return job, {
            "poll": job.poll(answer),
            "callback done": job.call_back("failed"),
            "duplicate callback": job.call_back("failed"),
            "late callback": job.call_back("queued"),
        }

    for order, ended in orders(database, connect, outside, begin, 2):
        expected = end("failed", ("failed", *SUBMITTED), error="provider_failed")
        assert ended == expected, order


@pytest.mark.parametrize("policy", ["keep", "discard"])
def test_around_a_cancellation_and_a_success(
    database: str, connect: Connect, outside: Connection, policy: str
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside, policy=policy).submitted()
        return job, {
            "cancel": job.cancel,
            "callback done": job.call_back("succeeded"),
            "duplicate callback": job.call_back("succeeded"),
            "poll running": job.poll("running"),
        }

    for order, ended in orders(database, connect, outside, begin, 2):
        asked_first = order.index("cancel") < min(
            order.index("callback done"), order.index("duplicate callback")
        )
        attempt = ("succeeded", *SUBMITTED)
        if policy == "keep":
            expected = end("provider_succeeded", attempt, asked=asked_first)
        else:
            # The wish throws away a result that it finds; one that comes after it is a cost.
            cases = ("stale_success",) if asked_first else ()
            expected = end("canceled", attempt, asked=True, cases=cases)
        assert ended == expected, order


def test_around_a_cancellation_that_the_provider_confirms(
    database: str, connect: Connect, outside: Connection
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside).submitted()
        return job, {
            "cancel": job.cancel,
            "poll canceled": job.poll("canceled"),
            "callback canceled": job.call_back("canceled"),
            "late callback": job.call_back("running", pct=90),
        }

    for order, ended in orders(database, connect, outside, begin, 2):
        asked_first = order.index("cancel") < min(
            order.index("poll canceled"), order.index("callback canceled")
        )
        error = None if asked_first else "canceled_by_provider"
        expected = end("canceled", ("canceled", *SUBMITTED), error=error, asked=asked_first)
        assert ended == expected, order


def test_around_a_late_result_of_an_old_attempt(
    database: str, connect: Connect, outside: Connection
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside).submitted().tried_again()
        return job, {
            "late old attempt": job.call_back("succeeded", old=True),
            "duplicate of it": job.call_back("succeeded", old=True),
            "poll running": job.poll("running"),
            "callback failed": job.call_back("failed"),
        }

    for order, ended in orders(database, connect, outside, begin, 2):
        expected = end(
            "failed",
            ("failed", *SUBMITTED),
            error="provider_failed",
            cases=("stale_success",),
            before=(("succeeded", *SUBMITTED),),
        )
        assert ended == expected, order


def test_of_contradictory_ends_the_first_stays(
    database: str, connect: Connect, outside: Connection
) -> None:
    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside).submitted()
        return job, {
            "failed": job.call_back("failed"),
            "succeeded": job.poll("succeeded"),
            "canceled": job.call_back("canceled"),
        }

    became = {
        "failed": ("failed", "provider_failed"),
        "succeeded": ("provider_succeeded", None),
        "canceled": ("canceled", "canceled_by_provider"),
    }
    for order, ended in orders(database, connect, outside, begin, 3):
        status, error = became[order[0]]
        attempt = (order[0], *SUBMITTED)
        assert ended == end(status, attempt, error=error, cases=("conflict",)), order


@pytest.mark.parametrize("sessions", [2, 3])
def test_around_a_new_attempt(
    database: str, connect: Connect, outside: Connection, sessions: int
) -> None:
    """Who is first decides whether the result counts; adopting it makes it count all the same."""

    def begin(outside: Connection) -> tuple[Job, dict[str, Step]]:
        job = Job(outside).submitted()
        job.overdue()
        return job, {
            "start again": job.start_again,
            "late callback": job.call_back("succeeded", old=True),
            "poll running": job.poll("running"),
            "adopt": job.adopt_first,
        }

    for order, ended in orders(database, connect, outside, begin, sessions):
        started = order.index("start again") < order.index("late callback")
        adopted = started and order.index("adopt") > order.index("late callback")
        old = ("succeeded", *SUBMITTED)
        if not started:
            expected = end("provider_succeeded", old)
        elif adopted:
            expected = end("provider_succeeded", ("canceled", "withdrawn", False), before=(old,))
        else:
            waiting = ("created", "due", False)
            expected = end("created", waiting, before=(old,), cases=("stale_success",))
        assert ended == expected, order
