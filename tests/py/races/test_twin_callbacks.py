"""Two deliveries of one event at the same instant, alone and within batches."""

from __future__ import annotations

import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Running, rows, value

pytestmark = pytest.mark.both_versions

ACCEPT = "select is_new from aivedio.accept_callbacks(array[fixture.delivery('evt-1')])"
BATCH = """
select ordinal, is_new
from aivedio.accept_callbacks(array(
  select fixture.delivery(event, 'task', 'processing', place::integer)
  from unnest(%s::text[]) with ordinality as given (event, place)
))
order by ordinal
"""


def test_the_second_twin_waits_and_then_sees_the_first(connect: Connect, database: str) -> None:
    first, second = connect(), connect(autocommit=True)
    assert rows(first, ACCEPT) == [(True,)]
    twin = Running(second, ACCEPT)
    twin.is_blocked(database)
    first.commit()
    assert twin.result() == [(False,)]
    assert value(second, "select count(*) from aivedio.provider_callback_inbox") == 1


def test_the_second_twin_takes_over_when_the_first_fails(connect: Connect, database: str) -> None:
    first, second = connect(), connect(autocommit=True)
    assert rows(first, ACCEPT) == [(True,)]
    twin = Running(second, ACCEPT)
    twin.is_blocked(database)
    first.rollback()
    assert twin.result() == [(True,)]


def test_batches_with_the_same_keys_in_any_order_wait_and_never_deadlock(
    connect: Connect, database: str
) -> None:
    sessions = [connect(autocommit=True) for _ in range(4)]
    new = 0
    for number in range(40):
        events = [f"evt-{number}-{place}" for place in range(12)]
        orders = [events, events[::-1], events[6:] + events[:6], events[::2] + events[1::2]]
        running = [
            Running(session, BATCH, order) for session, order in zip(sessions, orders, strict=True)
        ]
        answers = [statement.result() for statement in running]
        assert [len(answer) for answer in answers] == [12] * 4
        new += sum(is_new for answer in answers for _, is_new in answer)
    assert new == 40 * 12


def test_a_twin_within_one_batch_is_one_row(connect: Connect) -> None:
    session = connect(autocommit=True)
    answer = rows(session, BATCH, ["evt-1", "evt-2", "evt-1"])
    assert sorted(is_new for _, is_new in answer) == [False, True, True]


def test_two_workers_apply_one_callback_once(connect: Connect, database: str) -> None:
    first, second = connect(), connect(autocommit=True)
    value(second, "select fixture.job('task', 'queued')")
    rows(second, ACCEPT)
    work = "select (aivedio.process_inbox('{0,1,2,3,4,5,6,7}')).claimed"
    assert value(second, work) == 1  # the first call of all makes the queue's mark
    rows(second, "select aivedio.accept_callbacks(array[fixture.delivery('evt-2')])")
    assert value(first, work) == 1
    assert value(second, work) == 0  # the row's lock is its lease: skipped, not waited for
    first.rollback()  # a worker that dies leaves nothing behind
    assert value(second, work) == 1
    assert value(second, "select count(*) from aivedio.observations") == 1
