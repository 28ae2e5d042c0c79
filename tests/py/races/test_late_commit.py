"""A row whose writer commits late is never passed by the mark at which a queue's scan starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.py.conftest import Connect
from tests.py.support.sessions import Connection, rows, value
from tests.py.support.waiting import eventually

pytestmark = pytest.mark.both_versions

ALL_SHARDS = list(range(8))


@dataclass(frozen=True, slots=True)
class Queue:
    """How a queue is written, drained and measured; `write` names what it writes."""

    name: str
    prepare: Callable[[Connection], None]
    write: Callable[[Connection, str], None]
    drain: Callable[[Connection], list[str]]
    last_drawn: str


def nothing_late(queue: Queue, connect: Connect) -> None:
    """Drive one reader, one prompt writer and one late one."""
    reader, late, prompt, watcher = (connect(autocommit=True) for _ in range(4))
    queue.prepare(reader)
    mark = "select coalesce(max(low), 0) from aivedio.queue_marks where queue = %s"

    def look() -> list[str]:
        # A mark is written at most five times a second: that pause is over.
        rows(watcher, "update aivedio.queue_marks set noted_at = '-infinity'")
        return queue.drain(reader)

    def low() -> int:
        answer: int = value(watcher, mark, queue.name)
        return answer

    def last_drawn() -> int:
        answer: int = value(watcher, queue.last_drawn)
        return answer

    queue.write(prompt, "first")
    assert look() == ["first"]
    eventually(lambda: look() == [] and low() >= last_drawn(), what="the mark moves")

    # The late writer draws its id, and its transaction is the newest of all, when marks are noted.
    late.autocommit = False
    queue.write(late, "late")
    behind = last_drawn()
    seen: list[str] = []
    for number in range(8):
        seen += look() + look()
        queue.write(prompt, f"prompt {number}")
    seen += look() + look()
    assert seen == [f"prompt {number}" for number in range(8)]
    assert low() < behind

    late.commit()
    assert look() == ["late"]
    eventually(lambda: look() == [] and low() >= last_drawn(), what="the mark moves again")


def test_the_outbox(connect: Connect) -> None:
    shard = 3

    def name_in_shard(session: Connection, name: str) -> str:
        # One project a task, so that writers do not wait for each other; one shard for all of them.
        found: str = value(
            session,
            "select name from (select %s || '/' || n from generate_series(1, 500) n) as t (name)"
            " where aivedio._shard(fixture.id(name)) = %s limit 1",
            name,
            shard,
        )
        return found

    def write(session: Connection, name: str) -> None:
        task = name_in_shard(session, name)
        value(
            session,
            "select aivedio.apply_observation(fixture.observation("
            " fixture.job(%s, 'queued', p_project => %s), 'running'))",
            task,
            task,
        )

    def drain(session: Connection) -> list[str]:
        found = rows(
            session,
            "select message.id, task.trace_id from aivedio.read_outbox(%s::smallint) as message"
            " join aivedio.generation_tasks as task on task.id = message.task_id order by 1",
            shard,
        )
        rows(
            session,
            "select aivedio.mark_published(%s::smallint, %s)",
            shard,
            [message for message, _ in found],
        )
        return [trace.removeprefix("trace-").split("/")[0] for _, trace in found]

    def prepare(session: Connection) -> None:
        assert value(session, "select aivedio.own_shard(%s::smallint)", shard)

    nothing_late(
        Queue("outbox", prepare, write, drain, "select last_value from aivedio.outbox_ids"), connect
    )


def test_the_inbox(connect: Connect) -> None:
    def write(session: Connection, name: str) -> None:
        rows(
            session,
            "select aivedio.accept_callbacks(array[fixture.delivery(%s, %s)]) "
            "from fixture.job(%s, 'queued', p_project => %s)",
            name,
            name,
            name,
            name,
        )

    def drain(session: Connection) -> list[str]:
        rows(session, "select aivedio.process_inbox(%s::smallint[])", ALL_SHARDS)
        found = rows(
            session,
            "select provider_event_id from aivedio.provider_callback_inbox"
            " where process_status = 'done' and provider_event_id not in (select event from taken)"
            " order by id",
        )
        rows(session, "insert into taken select unnest(%s::text[])", [row[0] for row in found])
        return [row[0] for row in found]

    def prepare(session: Connection) -> None:
        rows(session, "create temporary table taken (event text)")

    nothing_late(
        Queue(
            "inbox",
            prepare,
            write,
            drain,
            "select last_value from aivedio.provider_callback_inbox_id_seq",
        ),
        connect,
    )


def test_the_bus(connect: Connect) -> None:
    def write(session: Connection, name: str) -> None:
        rows(
            session,
            "select aivedio.bus_publish(array[row(1, fixture.id(%s), 'running',"
            " jsonb_build_object('name', %s::text), 0)::aivedio.outbox_message])",
            name,
            name,
        )

    def drain(session: Connection) -> list[str]:
        found: list[tuple[Any, ...]] = rows(
            session,
            "select msg_id, body ->> 'name' from aivedio.bus_read('dispatcher', 99, 60) order by 1",
        )
        rows(session, "select aivedio.bus_ack('dispatcher', %s)", [row[0] for row in found])
        return [row[1] for row in found]

    nothing_late(
        Queue(
            "bus_dispatcher",
            lambda session: None if rows(session, "select aivedio.ensure_bus()") else None,
            write,
            drain,
            "select last_value from pgmq.q_aivedio_dispatcher_msg_id_seq",
        ),
        connect,
    )
