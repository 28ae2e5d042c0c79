"""Low-water marks of outbox and bus: no late commit is passed, no held snapshot slows a scan."""

from __future__ import annotations

from functools import partial

import pytest

from tests.py.conftest import Connect, Connection
from tests.py.relay.conftest import CHANGE
from tests.py.support.waiting import eventually

pytestmark = pytest.mark.both_versions

PUBLISH = """
select aivedio.bus_publish(array(
  select row(
    n, fixture.id('a'), 'running', jsonb_build_object('event_id', n), 0
  )::aivedio.outbox_message
  from generate_series(%s::int, %s) as n
))
"""


def mark(session: Connection, queue: str, shard: int = 0) -> int:
    row = session.execute(
        "select low from aivedio.queue_marks where queue = %s and shard = %s", [queue, shard]
    ).fetchone()
    return int(row[0]) if row else 0


def read(session: Connection) -> list[int]:
    rows = session.execute("select msg_id, body from aivedio.bus_read('dispatcher', 500, 60)")
    messages = rows.fetchall()
    session.execute("select aivedio.bus_ack('dispatcher', %s)", [[one[0] for one in messages]])
    return [one[1]["event_id"] for one in messages]


def reads(session: Connection, got: list[int], wanted: int) -> bool:
    got += read(session)
    return len(got) >= wanted


def test_a_message_that_commits_late_is_still_read(connect: Connect) -> None:
    # C1
    consumer = connect(autocommit=True)
    other = connect(autocommit=True)
    got: list[int] = []
    with connect() as slow:
        slow.execute(PUBLISH, [1, 2])
        for first in range(10, 60, 10):
            other.execute(PUBLISH, [first, first + 9])
            before = mark(consumer, "bus_dispatcher")
            eventually(partial(reads, consumer, got, first))
            # Long enough for the mark to move twice, if it were to.
            eventually(lambda: _noted_again(consumer))
            assert mark(consumer, "bus_dispatcher") == before == 0
        assert 1 not in got
        slow.commit()
    eventually(lambda: reads(consumer, got, 52))
    assert sorted(got) == [1, 2, *range(10, 60)]
    eventually(lambda: read(consumer) == [] and mark(consumer, "bus_dispatcher") >= 52)


def test_a_message_not_acknowledged_holds_the_mark(connect: Connect) -> None:
    consumer = connect(autocommit=True)
    consumer.execute(PUBLISH, [1, 1])
    taken = consumer.execute("select msg_id from aivedio.bus_read('dispatcher', 1, 600)").fetchall()
    consumer.execute(PUBLISH, [2, 200])
    got: list[int] = []
    eventually(lambda: reads(consumer, got, 199))
    for _ in range(3):
        eventually(lambda: _noted_again(consumer))
        assert mark(consumer, "bus_dispatcher") < taken[0][0]


def test_the_first_message_ever_is_not_passed(connect: Connect) -> None:
    # A sequence that has drawn nothing shows the value that it will draw first.
    consumer = connect(autocommit=True)
    assert read(consumer) == []
    with connect() as slow:
        slow.execute(PUBLISH, [1, 1])
        for _ in range(4):
            eventually(lambda: _noted_again(consumer))
            assert mark(consumer, "bus_dispatcher") == 0
        slow.commit()
    got: list[int] = []
    eventually(lambda: reads(consumer, got, 1))


@pytest.mark.parametrize("queue", ["bus", "outbox"])
def test_under_a_held_snapshot_a_scan_starts_behind_what_is_done(
    connect: Connect, queue: str
) -> None:
    # O17: rows that are done stay for the snapshot, so a scan must not begin with them.
    session = connect(autocommit=True)
    session.execute(CHANGE)
    session.execute("select fixture.task('a', p_status => 'running', p_version => 0)")
    with connect() as held:
        held.execute("set transaction isolation level repeatable read")
        held.execute("select count(*) from aivedio.outbox_events")
        if queue == "bus":
            name, shard = "bus_dispatcher", 0
            session.execute(PUBLISH, [1, 3000])
            got: list[int] = []
            eventually(lambda: reads(session, got, 3000), 30)
        else:
            name = "outbox"
            row = session.execute("select aivedio._shard(fixture.id('a'))").fetchone()
            assert row is not None
            shard = row[0]
            session.execute("select aivedio.own_shard(%s)", [shard])
            session.execute("select fixture.change(fixture.id('a')) from generate_series(1, 3000)")
            eventually(lambda: _sent_all(session, shard), 30)
        eventually(lambda: _looked(session, queue, shard) and mark(session, name, shard) >= 3000)
        blocks = _blocks(session, queue, shard)
        session.execute("update aivedio.queue_marks set low = 0, noted_at = clock_timestamp()")
        naive = _blocks(session, queue, shard)
    assert blocks < 100 < naive


def _noted_again(session: Connection) -> bool:
    """Read until the mark's row was written once more since the last call."""
    read(session)
    row = session.execute(
        "select noted_at from aivedio.queue_marks where queue = 'bus_dispatcher'"
    ).fetchone()
    noted = row[0] if row else None
    seen = _noted.get(session)
    _noted[session] = noted
    return noted is not None and noted != seen


_noted: dict[Connection, object] = {}


def _sent_all(session: Connection, shard: int) -> bool:
    rows = session.execute("select id from aivedio.read_outbox(%s, 500)", [shard]).fetchall()
    ids = [one[0] for one in rows]
    session.execute("select aivedio.mark_published(%s, %s)", [shard, ids])
    return not ids


def _looked(session: Connection, queue: str, shard: int) -> bool:
    if queue == "bus":
        return read(session) == []
    return _sent_all(session, shard)


def _blocks(session: Connection, queue: str, shard: int) -> int:
    """Return how many blocks one look reads, inside its function too."""
    look = (
        "aivedio.bus_read('dispatcher', 500, 60)"
        if queue == "bus"
        else f"aivedio.read_outbox({shard}::smallint, 500)"
    )
    query = f"explain (analyze, buffers, format json) select * from {look}"
    row = session.execute(query.encode()).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
