"""
Queue row, project stream, task, attempt, case, circuit, quota, alarm: in this order, or a deadlock.

Each test stops our functions at every lock that they may have to wait for, with others that touch
the same rows behind them, and lets them go: all come to an end. Beside it stands the breach: the
same work with its locks in another order, statement by statement, which the server has to break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations

import psycopg
import pytest

from tests.py.conftest import Connect, Connection
from tests.py.convergence.invariants import broken
from tests.py.convergence.lockstep import TENANT, USER
from tests.py.convergence.payloads import prepare
from tests.py.convergence.steps import Job, Statement, Step, waits
from tests.py.support.sessions import Running, rows
from tests.py.support.waiting import eventually

Setup = Callable[[Connection], tuple[Sequence[Job], Sequence[Step]]]

pytestmark = pytest.mark.timeout(600)

PAUSES = {
    "operation": "select 1 from aivedio.media_operations where project_id = any (%s) for update",
    "callback": "select 1 from aivedio.provider_callback_inbox where %s is not null for update",
    "stream": "select 1 from aivedio.project_streams where project_id = any (%s) for update",
    "task": "select 1 from aivedio.generation_tasks where project_id = any (%s) for update",
    "attempt": "select 1 from aivedio.task_attempts where project_id = any (%s) for update",
    "case": "select 1 from aivedio.reconciliation_cases where project_id = any (%s) for update",
}


@pytest.fixture
def outside(connect: Connect) -> Iterator[Connection]:
    session = connect(autocommit=True)
    prepare(session)
    yield session
    assert broken(session) == {}


def come_to_an_end(
    database: str, connect: Connect, outside: Connection, setup: Setup, *places: str
) -> None:
    """Stop the steps at each lock, in each order of two of them; none may fail."""
    pause, watcher = connect(), connect(autocommit=True)
    workers = [connect(autocommit=True) for _ in range(4)]
    _, some = setup(outside)
    for first, second in permutations(range(len(some)), 2):
        for place in (*places, "stream", "attempt"):
            jobs, steps = setup(outside)
            rest = [step for n, step in enumerate(steps) if n not in (first, second)]
            statements = [step() for step in (steps[first], steps[second], *rest)]
            rows(pause, PAUSES[place], [job.project for job in jobs])
            running = []
            for session, (query, arguments) in zip(workers, statements, strict=False):
                one = Running(session, query, *arguments)
                running.append(one)
                eventually(
                    lambda one=one, session=session: one.is_done() or waits(watcher, session),  # type: ignore[misc]
                    20.0,
                    "the step is done or waits",
                )
            pause.commit()
            for one in running:
                one.result()
            for job in jobs:
                job.close()


def clash(connect: Connect, first: Sequence[Statement], second: Sequence[Statement]) -> None:
    """Take the locks of two in turns, the last ones crosswise: one of them must be ended."""
    one, other = connect(), connect()
    for session, statements in ((one, first), (other, second)):
        for query, arguments in statements[:-1]:
            rows(session, query, *arguments)
    last = [
        Running(session, query, *arguments)
        for session, (query, arguments) in ((one, first[-1]), (other, second[-1]))
    ]
    ended = 0
    for running in last:
        try:
            running.result()
        except psycopg.errors.DeadlockDetected:
            ended += 1
    one.rollback()
    other.rollback()
    assert ended == 1


def lock(table: str, column: str, key: object) -> Statement:
    return (f"select 1 from aivedio.{table} where {column} = %s for no key update", (key,))


def claim_media() -> Statement:
    return "select operation_id from aivedio.claim_media('another', 100)", ()


def work() -> Statement:
    return "select claimed from aivedio.process_inbox('{0,1,2,3,4,5,6,7}', 100)", ()


def test_claims_of_media_against_reports(
    database: str, connect: Connect, outside: Connection
) -> None:
    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        job = Job(outside).submitted()
        job.after(job.call_back("succeeded", rev=1))
        job.after(*job.media())
        (verify,) = job.media()
        # The provider corrects itself twice: backhaul begins again while somebody has verify.
        job.after(job.call_back("failed", rev=2), job.call_back("succeeded", rev=3))
        message = job.tell("open_media")
        (backhaul,) = job.media()
        return [job], [backhaul, verify, claim_media, lambda: message]

    come_to_an_end(database, connect, outside, setup, "operation", "task")


@pytest.mark.both_versions
def test_a_claim_of_media_that_emits(connect: Connect, outside: Connection) -> None:
    """Two claims of two projects each, in which each operation is followed by its stream."""
    one, other = Job(outside).submitted(), Job(outside).submitted()
    clash(
        connect,
        [
            lock("project_streams", "project_id", one.project),
            lock("project_streams", "project_id", other.project),
        ],
        [
            lock("project_streams", "project_id", other.project),
            lock("project_streams", "project_id", one.project),
        ],
    )


@pytest.mark.both_versions
def test_a_report_of_media_that_opens_the_next_operation_last(
    connect: Connect, outside: Connection
) -> None:
    job = Job(outside).submitted()
    job.after(job.call_back("succeeded"))
    job.after(*job.media())
    backhaul, verify = rows(
        outside,
        "select id from aivedio.media_operations where project_id = %s order by id",
        job.project,
    )
    stream = lock("project_streams", "project_id", job.project)
    clash(
        connect,
        [
            lock("media_operations", "id", *backhaul),
            stream,
            lock("media_operations", "id", *verify),
        ],
        [lock("media_operations", "id", *verify), stream],
    )


def test_requeued_callbacks_against_the_inbox(
    database: str, connect: Connect, outside: Connection
) -> None:
    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        job = Job(outside).submitted()
        job.call_back("running")()
        dead = rows(
            outside,
            "update aivedio.provider_callback_inbox set process_status = 'dead'"
            " where process_status = 'pending' returning id",
        )
        job.call_back("succeeded")()
        requeue = "select aivedio.requeue_callback(%s, 'ops', 'why')"
        return [job], [lambda: (requeue, dead[0]), work, job.poll("running"), work]

    come_to_an_end(database, connect, outside, setup, "callback")


@pytest.mark.both_versions
def test_a_replay_that_locks_the_stream_before_the_callback(
    connect: Connect, outside: Connection
) -> None:
    job = Job(outside).submitted()
    job.call_back("running")()
    callback = lock("provider_callback_inbox", "process_status", "pending")
    stream = lock("project_streams", "project_id", job.project)
    clash(connect, [stream, callback], [callback, stream])


def test_accepting_callbacks_against_applying_them(
    database: str, connect: Connect, outside: Connection
) -> None:
    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        job = Job(outside).submitted()
        job.call_back("running")()
        job.after(job.hint)
        return [job], [work, job.hint, job.poll("running"), partial(job.deliver, "running")]

    come_to_an_end(database, connect, outside, setup, "callback")


@pytest.mark.both_versions
def test_accepting_a_callback_that_touches_the_attempt(
    connect: Connect, outside: Connection
) -> None:
    job = Job(outside).submitted()
    job.after(job.hint)
    callback = lock("provider_callback_inbox", "process_status", "pending")
    attempt = lock("task_attempts", "id", job.attempt)
    clash(connect, [attempt, callback], [callback, attempt])


def test_adoption_against_callbacks_of_both_attempts(
    database: str, connect: Connect, outside: Connection
) -> None:
    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        job = Job(outside).submitted().tried_again()
        job.after(job.call_back("succeeded", old=True))
        job.call_back("running")()
        job.call_back("failed", old=True)()
        billing = partial(job.tell, "book_credit")
        return [job], [job.adopt_first, work, job.poll("running"), billing]

    come_to_an_end(database, connect, outside, setup, "task", "case")


def test_a_new_attempt_against_the_old_one(
    database: str, connect: Connect, outside: Connection
) -> None:
    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        job = Job(outside).submitted()
        job.overdue()
        job.call_back("succeeded")()
        return [job], [job.start_again, work, job.poll("running"), job.cancel]

    come_to_an_end(database, connect, outside, setup, "task")


@pytest.mark.both_versions
def test_a_command_that_locks_the_attempt_before_the_stream(
    connect: Connect, outside: Connection
) -> None:
    job = Job(outside).submitted()
    attempt = lock("task_attempts", "id", job.attempt)
    stream = lock("project_streams", "project_id", job.project)
    clash(connect, [attempt, stream], [stream, attempt])


@pytest.mark.both_versions
def test_polls_against_batches_of_callbacks_in_many_projects(
    database: str, connect: Connect, outside: Connection
) -> None:
    """Two workers hold callbacks of the same projects, in opposite orders; polls come between."""

    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        jobs = [Job(outside).submitted() for _ in range(3)]
        for job in (*jobs, *reversed(jobs)):
            job.call_back("running")()
        half = "select claimed from aivedio.process_inbox('{0,1,2,3,4,5,6,7}', 3)"
        polls = [jobs[0].poll("succeeded"), jobs[2].poll(None)]
        return jobs, [lambda: (half, ()), lambda: (half, ()), *polls]

    come_to_an_end(database, connect, outside, setup, "callback")


def test_submissions_of_many_projects_against_callbacks(
    database: str, connect: Connect, outside: Connection
) -> None:
    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        jobs = [Job(outside) for _ in range(3)]
        for job in reversed(jobs):
            job.call_back("running")()
        return jobs, [jobs[0].lose_submit, work, jobs[1].accept, jobs[2].cancel]

    come_to_an_end(database, connect, outside, setup)


def test_a_decision_about_a_case_against_what_opened_it(
    database: str, connect: Connect, outside: Connection
) -> None:
    def setup(outside: Connection) -> tuple[Sequence[Job], Sequence[Step]]:
        job = Job(outside).submitted()
        job.after(job.call_back("succeeded"), job.call_back("failed"))
        ((case,),) = rows(
            outside,
            "select id from aivedio.reconciliation_cases where task_id = %s",
            job.task,
        )
        job.call_back("canceled")()
        job.hold_poll()
        resolve = "select aivedio.resolve_case(%s, 'kept', 'ops', 'why')"
        return [job], [lambda: (resolve, (case,)), work, job.poll("failed"), job.cancel]

    come_to_an_end(database, connect, outside, setup, "case")


@pytest.mark.both_versions
def test_a_caller_that_creates_tasks_in_two_projects(connect: Connect, outside: Connection) -> None:
    """The one breach that no function of ours can prevent: a transaction keeps to one project."""

    def create(job: Job) -> Statement:
        return (
            "select verdict from aivedio.create_task(%s, %s, %s, 'lumen', 'model-1', '{}')",
            (TENANT, job.project, USER),
        )

    one, other = Job(outside), Job(outside)
    clash(connect, [create(one), create(other)], [create(other), create(one)])
