"""Partitions end and go while writers write and readers read: no id twice, no chain broken."""

from __future__ import annotations

from contextlib import suppress
from threading import Event, Thread

import psycopg
import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Connection, Running, rows, value

pytestmark = pytest.mark.both_versions

WRITERS = 3
CREATE = """
select (aivedio.create_task(
  fixture.id('tenant'), %s, fixture.id('user'), 'replicate', 'model', '{}', %s
)).verdict
"""
BROKEN = "select count(*) from aivedio.alarms where kind in ('stream_broken', 'version_twice')"


def drop(session: Connection) -> str:
    """Drop a partition, or announce it, as upkeep does: again while a vacuum is at work."""
    for _ in range(100):
        with suppress(psycopg.errors.LockNotAvailable):
            return str(value(session, "select aivedio.drop_partition('task_events')"))
    raise AssertionError("the table is always busy")


def test_ids_move_on_under_load(connect: Connect) -> None:
    """Each end moves the ids of a table that three writers are drawing from."""
    admin = connect(autocommit=True)
    projects = [value(admin, "select fixture.id(%s)", f"p{number}") for number in range(WRITERS)]
    stop = Event()
    faults: list[object] = []
    written: list[int] = []

    def write(number: int) -> None:
        session = connect(autocommit=True)
        count = 0
        try:
            while not stop.is_set():
                count += 1
                assert value(session, CREATE, projects[number], f"key {number} {count}")
        except Exception as error:
            faults.append(error)
        written.append(count)

    writers = [Thread(target=write, args=(number,), daemon=True) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    # For whoever keeps partitions each is old already, and for nobody else.
    keeper = connect(autocommit=True)
    keeper.execute("select set_config('aivedio.now', (now() + interval '2 days')::text, false)")
    ended = 0
    for _ in range(2000):
        try:
            done = value(keeper, "select aivedio.keep_partitions('task_events')")
        except psycopg.errors.LockNotAvailable:
            continue
        ended += done == "ended"
        if ended == 12 or faults:
            break
    stop.set()
    for writer in writers:
        writer.join(20.0)
    assert faults == []
    assert ended == 12
    events = value(admin, "select count(distinct event_id) from aivedio.task_events")
    assert events == sum(written)
    keeper.execute("select aivedio.check_streams(1000000)")
    assert value(keeper, BROKEN) == 0


def test_a_partition_that_is_read_is_dropped_later(connect: Connect, database: str) -> None:
    """A reader of the table makes the drop give up soon, and so holds up no writer behind it."""
    reader, keeper, writer = connect(), connect(autocommit=True), connect(autocommit=True)
    keeper.execute("select setval('aivedio.task_event_ids', 100000001)")
    assert value(keeper, "select aivedio.drop_partition('task_events')") == "announced"
    rows(reader, "select * from aivedio.task_events limit 1")
    dropping = Running(keeper, "select aivedio.drop_partition('task_events')")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        dropping.result()
    assert value(writer, CREATE, value(writer, "select fixture.id('p')"), "a key") == "applied"
    reader.commit()
    assert drop(keeper) == "dropped"
    gone = "select to_regclass('aivedio.task_events_p0') is null"
    assert value(keeper, gone)


def test_a_row_whose_partition_went_fails_whole(connect: Connect) -> None:
    """Who drew an id before a drop and writes after it loses its transaction, and no other's."""
    late, keeper = connect(), connect(autocommit=True)
    value(keeper, "select fixture.job('late')")
    number = value(late, "select nextval('aivedio.task_event_ids')")
    keeper.execute("select setval('aivedio.task_event_ids', 100000001)")
    for done in ("announced", "dropped"):
        assert drop(keeper) == done
    with pytest.raises(psycopg.errors.CheckViolation, match="no partition"):
        rows(late, "select fixture.event(%s, 0, 'late')", number)
