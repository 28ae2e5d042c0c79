"""
All stages at once on the same few tasks: they wait for each other and never deadlock.

Locks are taken in one order, queue row → project stream → task → attempt → case → alarm. Each
actor here is one kind of process, calling what it calls in production, in its own session.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from threading import Thread
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.py.conftest import Connect
from tests.py.support.sessions import Connection, rows, value

ROUNDS = 150
PROJECTS = ("north", "south")
ALL_SHARDS = list(range(8))
WORDS = ("starting", "processing", "succeeded", "failed", "canceled")
Actor = Callable[[Connection, random.Random, int], None]


def any_task(session: Connection, dice: random.Random) -> tuple[Any, ...]:
    found = rows(
        session,
        "select tenant_id, project_id, id, current_attempt_id from aivedio.generation_tasks",
    )
    return dice.choice(found)


def answer(session: Connection, dice: random.Random, attempt: uuid.UUID) -> dict[str, object]:
    """Return an outcome of a request to the provider about an attempt."""
    known = value(
        session, "select provider_task_id from aivedio.task_attempts where id = %s", attempt
    )
    body = {"id": known or f"provider-{attempt}", "status": dice.choice(WORDS), "logs": ""}
    if body["status"] == "succeeded":
        body["output"] = "https://replicate.delivery/out.mp4"
    return dice.choice(
        [
            {"kind": "response", "http_status": 200, "body": body},
            {"kind": "response", "http_status": 200, "body": body},
            {"kind": "response", "http_status": 503, "body": None},
            {"kind": "timeout", "error": "ReadTimeout"},
        ]
    )


def application(session: Connection, dice: random.Random, number: int) -> None:
    project = dice.choice(PROJECTS)
    if number < 12 or dice.random() < 0.1:
        rows(
            session,
            "select aivedio.create_task(fixture.id('tenant'), fixture.id(%s), fixture.id('user'),"
            " 'replicate', 'm', '{}', %s)",
            project,
            f"key {dice.randrange(30)}",
        )
        return
    tenant, project_id, task, _ = any_task(session, dice)
    if dice.random() < 0.3:
        rows(
            session,
            "select aivedio.request_cancel(%s, %s, %s, fixture.id('user'))",
            *(tenant, project_id, task),
        )
    else:
        rows(
            session,
            "select aivedio.start_attempt(%s, %s, %s, 'operator', 'try again')",
            *(tenant, project_id, task),
        )


def webhook(session: Connection, dice: random.Random, number: int) -> None:
    known = rows(
        session,
        "select provider_task_id from aivedio.task_attempts where provider_task_id is not null",
    )
    names = [row[0] for row in dice.sample(known, min(5, len(known)))] + ["nobody's"]
    rows(
        session,
        "select aivedio.accept_callbacks(array(select fixture.delivery("
        " %s || place, replace(name, 'provider-', ''), %s, place::integer)"
        " from unnest(%s::text[]) with ordinality as given (name, place)))",
        f"evt {dice.randrange(ROUNDS)} ",
        dice.choice(WORDS),
        names,
    )


def inbox(session: Connection, dice: random.Random, number: int) -> None:
    rows(session, "select aivedio.process_inbox(%s::smallint[], 10)", ALL_SHARDS)


def submit(session: Connection, dice: random.Random, number: int) -> None:
    for kind, arguments in (
        ("submit", "'w', 5, 'http://127.0.0.1/callbacks'"),
        ("cancel", "'w', 5"),
    ):
        claims = rows(
            session, f"select attempt_id, lease_token from aivedio.claim_{kind}s({arguments})"
        )
        for attempt, token in claims:
            outcome = Jsonb(answer(session, dice, attempt))
            rows(session, f"select aivedio.settle_{kind}(%s, %s, %s)", attempt, token, outcome)


def poll(session: Connection, dice: random.Random, number: int) -> None:
    rows(session, "set aivedio.now = '2100-01-01'")  # everything is due
    claims = rows(session, "select attempt_id, lease_token from aivedio.claim_polls('w', 10)")
    rows(session, "reset aivedio.now")
    for attempt, token in claims:
        outcome = Jsonb(answer(session, dice, attempt))
        rows(session, "select aivedio.settle_poll(%s, %s, %s)", attempt, token, outcome)


def reconcile(session: Connection, dice: random.Random, number: int) -> None:
    *_, attempt = any_task(session, dice)
    rows(
        session,
        "select aivedio.apply_observation(fixture.observation(%s, %s, 'reconcile', %s))",
        attempt,
        dice.choice(["queued", "running", "running", "succeeded", "failed"]),
        dice.randrange(100),
    )


def media(session: Connection, dice: random.Random, number: int) -> None:
    for (message,) in rows(
        session, "select payload from aivedio.outbox_events order by random() limit 5"
    ):
        rows(session, "select aivedio.book_credit(%s)", Jsonb(message))
        if message["status"] == "provider_succeeded":
            rows(session, "select aivedio.open_media(%s)", Jsonb(message))
    for operation, token, kind in rows(
        session,
        "select operation_id, lease_token, operation_type from aivedio.claim_media('w', 4)",
    ):
        done = {"done": {"asset_id": "ast_1"} if kind == "publish" else {}}
        report = dice.choice([done, done, {"progress": 50}, {"failed": "broken", "retry": False}])
        rows(session, "select aivedio.report_media(%s, %s, %s)", operation, token, Jsonb(report))


def operator(session: Connection, dice: random.Random, number: int) -> None:
    for (case,) in rows(
        session,
        "select id from aivedio.reconciliation_cases where state = 'open'"
        " order by random() limit 2",
    ):
        rows(session, "select aivedio.resolve_case(%s, 'kept', 'operator', 'seen')", case)
    for (dead,) in rows(
        session,
        "select id from aivedio.provider_callback_inbox where process_status <> 'done' limit 2",
    ):
        rows(session, "select aivedio.requeue_callback(%s, 'operator', 'again')", dead)


ACTORS: tuple[Actor, ...] = (
    *(application, application, webhook, webhook, inbox, inbox),
    *(submit, submit, poll, poll, reconcile, media, media, operator),
)


def play(actor: Actor, session: Connection, seed: int, failures: list[str]) -> None:
    dice = random.Random(seed)
    for number in range(ROUNDS):
        try:
            actor(session, dice, number)
        except psycopg.errors.Error as error:
            # 22 and VC are refusals of what the dice asked for.
            if not str(error.sqlstate).startswith(("VC",)):
                failures.append(f"{actor.__name__} {number}: {error.sqlstate} {error}")
        except IndexError:
            continue  # there is no task yet


@pytest.mark.both_versions
def test_all_stages_at_once_never_deadlock(connect: Connect) -> None:
    failures: list[str] = []
    threads = [
        Thread(target=play, args=(actor, connect(autocommit=True), seed, failures), daemon=True)
        for seed, actor in enumerate(ACTORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240.0)
        assert not thread.is_alive(), "an actor never ended"
    assert failures == []

    watcher = connect(autocommit=True)
    # The play was about something: all stages left their rows.
    for table in (
        *("task_events", "observations", "reconciliation_cases", "media_operations"),
        *("credit_ledger", "operator_actions"),
    ):
        assert value(watcher, f"select count(*) from aivedio.{table}") > 0, table
    # And what it left is whole: versions without a gap, one event each, one chain per project.
    assert (
        rows(
            watcher,
            "select task.id from aivedio.generation_tasks as task"
            " left join aivedio.task_events as event on event.task_id = task.id"
            " group by task.id"
            " having count(*) <> task.version or max(event.task_version) <> task.version",
        )
        == []
    )
    assert (
        rows(
            watcher,
            "select event_id from (select event_id, prev_event_id, lag(event_id, 1, 0::bigint)"
            " over (partition by project_id order by event_id) as before from aivedio.task_events)"
            " as link where prev_event_id <> before",
        )
        == []
    )
