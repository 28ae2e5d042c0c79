"""A callback and a poll bring the same end, or two different ones, at the same instant."""

from __future__ import annotations

import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Running, rows, value

pytestmark = pytest.mark.both_versions

OBSERVE = """
select (aivedio.apply_observation(
  fixture.observation(fixture.id('attempt of task'), %s, p_source => %s)
)).verdict
"""
ENDS = "select source, verdict from aivedio.observations order by id"
TASK = "select status, version from aivedio.generation_tasks"


@pytest.mark.parametrize("first_source", ["webhook", "poll"])
def test_the_same_end_twice_is_applied_once(
    connect: Connect, database: str, first_source: str
) -> None:
    second_source = {"webhook": "poll", "poll": "webhook"}[first_source]
    first, second = connect(), connect(autocommit=True)
    value(second, "select fixture.job('task', 'running')")
    assert value(first, OBSERVE, "succeeded", first_source) == "applied"
    late = Running(second, OBSERVE, "succeeded", second_source)
    late.is_blocked(database)
    first.commit()
    assert late.result() == [("duplicate",)]
    assert rows(second, TASK) == [("provider_succeeded", 2)]
    assert rows(second, ENDS) == [(first_source, "applied"), (second_source, "duplicate")]


def test_of_two_contradictory_ends_one_wins_and_the_other_opens_a_case(
    connect: Connect, database: str
) -> None:
    first, second = connect(), connect(autocommit=True)
    value(second, "select fixture.job('task', 'running')")
    assert value(first, OBSERVE, "succeeded", "webhook") == "applied"
    late = Running(second, OBSERVE, "failed", "poll")
    late.is_blocked(database)
    first.commit()
    assert late.result() == [("conflict",)]
    assert rows(second, TASK) == [("provider_succeeded", 2)]
    assert rows(second, "select kind, state from aivedio.reconciliation_cases") == [
        ("conflict", "open")
    ]


def test_a_poll_that_was_rolled_back_leaves_the_callback_to_apply(
    connect: Connect, database: str
) -> None:
    first, second = connect(), connect(autocommit=True)
    value(second, "select fixture.job('task', 'running')")
    assert value(first, OBSERVE, "failed", "poll") == "applied"
    late = Running(second, OBSERVE, "succeeded", "webhook")
    late.is_blocked(database)
    first.rollback()
    assert late.result() == [("applied",)]
    assert rows(second, TASK) == [("provider_succeeded", 2)]


def test_the_inbox_against_a_poll(connect: Connect, database: str) -> None:
    poll, inbox = connect(), connect(autocommit=True)
    value(inbox, "select fixture.job('task', 'running')")
    rows(
        inbox,
        "select aivedio.accept_callbacks(array[fixture.delivery('evt', 'task', 'succeeded')])",
    )
    assert value(poll, OBSERVE, "succeeded", "poll") == "applied"
    work = Running(inbox, "select applied, ignored from aivedio.process_inbox('{0,1,2,3,4,5,6,7}')")
    work.is_blocked(database)
    poll.commit()
    assert work.result() == [(0, 1)]
    assert rows(inbox, ENDS) == [("poll", "applied"), ("webhook", "duplicate")]
    # The callback's output URLs are kept all the same: the poll had none.
    assert rows(inbox, "select kind, url from aivedio.attempt_outputs") == [
        ("video", "https://replicate.delivery/out.mp4")
    ]
