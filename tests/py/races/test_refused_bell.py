"""A writer that was refused the bell and commits after the last look is not overlooked."""

from __future__ import annotations

import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Connection, Running, rows, value
from tests.py.support.waiting import eventually

pytestmark = pytest.mark.both_versions

CHANNEL = "aivedio_outbox"
RING = "select aivedio._ring('aivedio_outbox', 3::smallint)"
HOLD = "select aivedio.hold_bell('aivedio_outbox', 3::smallint)"
RELEASE = "select aivedio.release_bell('aivedio_outbox', 3::smallint)"
QUIET = "select aivedio.bell_quiet(%s)"


def write_and_ring(writer: Connection) -> None:
    """Write a row and ring last, as every writer does."""
    rows(writer, "insert into public.work values (1)")
    rows(writer, RING)


def heard(reader: Connection) -> list[str]:
    """Return what has been notified; the statement before collects what the server has sent."""
    rows(reader, "select 1")
    return [notice.payload for notice in reader.notifies(timeout=0)]


@pytest.fixture
def reader(connect: Connect) -> Connection:
    session = connect(autocommit=True)
    rows(session, "create table public.work (n integer)")
    rows(session, f"listen {CHANNEL}")
    return session


def test_a_sleeping_reader_is_rung(connect: Connect, reader: Connection) -> None:
    writer = connect()
    write_and_ring(writer)
    assert heard(reader) == []
    writer.commit()
    assert heard(reader) == ["3"]


def test_an_awake_reader_is_not(connect: Connect, reader: Connection) -> None:
    writer = connect()
    assert value(reader, HOLD) is True
    write_and_ring(writer)
    writer.commit()
    assert heard(reader) == []


def test_a_reader_may_not_sleep_before_a_refused_writer_is_over(
    connect: Connect, reader: Connection
) -> None:
    writer = connect()
    assert value(reader, HOLD) is True
    write_and_ring(writer)
    assert value(reader, "select count(*) from public.work") == 0  # its last look
    released_at = value(reader, RELEASE)
    assert value(reader, QUIET, released_at) is False
    writer.commit()
    assert heard(reader) == []  # nobody rang: only looking on finds the row
    # Eventually, since transactions of other databases count too.
    eventually(lambda: value(reader, QUIET, released_at))
    assert value(reader, "select count(*) from public.work") == 1


def test_a_refused_writer_with_the_newest_transaction_is_waited_for(
    connect: Connect, reader: Connection
) -> None:
    """No transaction ends between the writer's first statement and the release."""
    writer, other = connect(), connect(autocommit=True)
    assert value(reader, HOLD) is True
    write_and_ring(writer)
    released_at = value(reader, RELEASE)
    for _ in range(3):
        value(other, "select pg_current_xact_id()::text")
        assert value(reader, QUIET, released_at) is False
    writer.rollback()
    eventually(lambda: value(reader, QUIET, released_at))


def test_a_reader_waits_for_a_writer_that_is_ringing(
    connect: Connect, reader: Connection, database: str
) -> None:
    """Trying without waiting would starve among many writers; waiting is bounded."""
    writer = connect()
    write_and_ring(writer)
    assert value(reader, HOLD) is False  # 50 ms passed; the reader drains all the same
    rows(reader, "set lock_timeout = 0")
    holding = Running(reader, "select pg_advisory_lock(hashtext('aivedio_outbox'), 3)")
    holding.is_blocked(database)
    writer.commit()
    holding.result()
