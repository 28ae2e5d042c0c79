"""A database where much has gone wrong, made by the functions that a running system calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.py.support.sessions import rows, value

Connection = psycopg.Connection[Any]

# What no answer of the page may hold: each is somewhere in the database.
OUTPUT_URL = "https://replicate.delivery/out.mp4"
PROVIDER_TEXT = "CUDA out of memory"
SAMPLE = "<html>upstream says no</html>"
PROMPT = "a lighthouse at dawn"
TOKEN = "the token of a callback's address"
PRIVATE = (OUTPUT_URL, PROVIDER_TEXT, SAMPLE, PROMPT, "/run/secrets/replicate")


@dataclass(frozen=True)
class Seed:
    """What there is to find."""

    waits: str
    over: str
    twice: str
    callback: int
    orphan: int
    message: int


def fault_ridden(session: Connection) -> Seed:
    """
    Fill a database.

    `waits` runs, and its end came too early and is dead; `over` failed and was told to have
    succeeded; the first attempt of `twice` succeeded after it was replaced. A message of `over` is
    parked, two are dead letters, a circuit is open, an answer could not be read.
    """
    # The end of a job that is not there yet, and one of nobody: both have been tried too often.
    for event, name in (("early", "waits"), ("stray", "nobody")):
        _deliver(session, event, name, "succeeded")
    session.execute(b"update aivedio.provider_callback_inbox set retry_count = 100")
    _process(session)
    _job(session, "waits", "running")
    _job(session, "over", "running")
    _deliver(session, "end", "over", "failed")
    _deliver(session, "other end", "over", "succeeded")
    _deliver(session, "other end", "over", "succeeded")
    _process(session)
    _job(session, "twice", "failed")
    rows(
        session,
        "select aivedio.start_attempt(fixture.id('tenant'), fixture.id('project'), fixture.id(%s),"
        " 'somebody', 'the first one failed')",
        "twice",
    )
    _replaced_success(session)
    _unreadable_answer(session)
    rows(session, "select aivedio.own_shard(shard::smallint) from generate_series(0, 7) as shard")
    message, shard = rows(
        session,
        "select id, shard from aivedio.outbox_events where aggregate_id = fixture.id('over')"
        " order by id limit 1",
    )[0]
    for _ in range(6):
        rows(
            session,
            "select aivedio.mark_unsent(%s, array[%s]::bigint[], 'TooLarge')",
            shard,
            message,
        )
    _dead_letters(session)
    rows(session, "select aivedio._open_circuit('runway', 'default', 'credential_refused')")
    rows(
        session,
        "select aivedio.rotate_credential('replicate', 'default', 'file:/run/secrets/replicate',"
        " 'somebody', 'a new key')",
    )
    session.commit()
    return Seed(
        waits=_id(session, "waits"),
        over=_id(session, "over"),
        twice=_id(session, "twice"),
        callback=_callback(session, "early"),
        orphan=_callback(session, "stray"),
        message=message,
    )


def _id(session: Connection, name: str) -> str:
    return str(value(session, "select fixture.id(%s)", name))


def _callback(session: Connection, event: str) -> int:
    found: int = value(
        session,
        "select id from aivedio.provider_callback_inbox where provider_event_id = %s",
        event,
    )
    return found


def _job(session: Connection, name: str, status: str) -> None:
    rows(session, "select fixture.job(%s, %s)", name, status)
    rows(
        session,
        "update aivedio.task_attempts set callback_token_hash = sha256(%s::bytea)"
        " where task_id = fixture.id(%s)",
        f"{TOKEN} {name}".encode(),
        name,
    )


def _deliver(session: Connection, event: str, name: str, status: str) -> None:
    rows(
        session,
        "select aivedio.accept_callbacks(array[fixture.delivery(%s, %s, %s)])",
        event,
        name,
        status,
    )


def _process(session: Connection) -> None:
    rows(session, "select aivedio.process_inbox('{0,1,2,3,4,5,6,7}')")


def _replaced_success(session: Connection) -> None:
    rows(
        session,
        "update aivedio.task_attempts set status = 'running', known_status = 'running',"
        " terminal_at = null where id = fixture.id('attempt of twice')",
    )
    rows(
        session,
        "select aivedio.apply_observation(fixture.observation(fixture.id('attempt of twice'),"
        " 'succeeded', p_outputs => %s::jsonb))",
        json.dumps([{"kind": "video", "url": OUTPUT_URL}]),
    )


def _unreadable_answer(session: Connection) -> None:
    rows(
        session,
        "update aivedio.task_attempts set next_poll_at = now() - interval '1 second'"
        " where task_id = fixture.id('waits')",
    )
    ((attempt, lease),) = rows(
        session, "select attempt_id, lease_token from aivedio.claim_polls('poller')"
    )
    answer = {"kind": "malformed", "http_status": 200, "sample": SAMPLE}
    rows(session, "select aivedio.settle_poll(%s, %s, %s)", attempt, lease, json.dumps(answer))


def _dead_letters(session: Connection) -> None:
    rows(
        session,
        "select aivedio.bus_publish(array(select row(n, fixture.id('over'), 'provider_succeeded',"
        " jsonb_build_object('event_id', n), 0)::aivedio.outbox_message"
        " from generate_series(1, 2) as n))",
    )
    rows(
        session,
        "select aivedio.bus_dead('media', message.msg_id, 'Rejected VC701')"
        " from aivedio.bus_read('media', 9, 30) as message",
    )
