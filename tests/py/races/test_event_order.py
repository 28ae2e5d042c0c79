"""Events of a project become visible in the order of their ids: no reader can pass one."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Connection, Running, rows, value

pytestmark = pytest.mark.both_versions

OBSERVE = """
select (aivedio.apply_observation(
  fixture.observation(fixture.id('attempt of ' || %s), %s, p_progress => %s)
)).event_id
"""
PAGE = """
select page.complete, page.more, coalesce(array(
  select event.event_id from unnest(page.events) as event order by event.event_id
), '{}')
from aivedio.read_events_after(fixture.id('project'), %s, 7) as page
"""


def test_a_writer_that_commits_late_holds_up_the_next_one(connect: Connect, database: str) -> None:
    late, prompt, reader = connect(), connect(autocommit=True), connect(autocommit=True)
    for name in ("one", "two"):
        value(prompt, "select fixture.job(%s, 'queued')", name)
    first = value(late, OBSERVE, "one", "running", 10)
    second = Running(prompt, OBSERVE, "two", "running", 10)
    second.is_blocked(database)
    assert rows(reader, PAGE, 0) == [(True, False, [])]
    late.commit()
    ((following,),) = second.result()
    assert following > first
    assert rows(reader, PAGE, 0) == [(True, False, [first, following])]


def test_a_writer_that_fails_leaves_no_hole(connect: Connect, database: str) -> None:
    late, prompt, reader = connect(), connect(autocommit=True), connect(autocommit=True)
    for name in ("one", "two"):
        value(prompt, "select fixture.job(%s, 'queued')", name)
    lost = value(late, OBSERVE, "one", "running", 10)
    second = Running(prompt, OBSERVE, "two", "running", 10)
    second.is_blocked(database)
    late.rollback()
    ((following,),) = second.result()
    assert following > lost  # an id was drawn in vain; the chain passes over it
    assert rows(reader, PAGE, 0) == [(True, False, [following])]


def test_other_projects_do_not_wait(connect: Connect) -> None:
    late, prompt = connect(), connect(autocommit=True)
    value(prompt, "select fixture.job('one', 'queued')")
    value(prompt, "select fixture.job('elsewhere', 'queued', p_project => 'another')")
    value(late, OBSERVE, "one", "running", 10)
    assert value(prompt, OBSERVE, "elsewhere", "running", 10)


def test_readers_among_writers_miss_nothing(connect: Connect) -> None:
    """Three writers on one project, one of them rolling back; readers page along with them."""
    setup = connect(autocommit=True)
    for number in range(3):
        value(setup, "select fixture.job(%s, 'queued')", f"task {number}")
    rows(setup, "insert into aivedio.project_settings select fixture.id('project'), 'keep', 1, '0'")
    written: list[list[int]] = [[], [], []]
    stop = Event()
    faults: list[object] = []

    def write(session: Connection, number: int) -> None:
        for progress in range(1, 100):
            event = value(session, OBSERVE, f"task {number}", "running", progress)
            if number == 2 and progress % 2:
                session.rollback()
            else:
                session.commit()
                written[number].append(event)

    def read(session: Connection, seen: list[int]) -> None:
        while True:
            finished = stop.is_set()
            ((complete, more, events),) = rows(session, PAGE, seen[-1] if seen else 0)
            if not complete:
                faults.append((seen[-1:], events))
                return
            seen.extend(events)
            if finished and not more:
                return

    seen: list[list[int]] = [[], []]
    writers = [Thread(target=write, args=(connect(), number)) for number in range(3)]
    readers = [Thread(target=read, args=(connect(autocommit=True), found)) for found in seen]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join(60.0)
        assert not thread.is_alive()
    stop.set()
    for thread in readers:
        thread.join(60.0)
        assert not thread.is_alive()

    everything = sorted(event for events in written for event in events)
    assert faults == []
    assert len(everything) == 99 + 99 + 49
    assert seen == [everything, everything]
