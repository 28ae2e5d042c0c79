"""
Single steps in the life of a job, as transactions that can be made to wait for each other.

A `Job` is committed up to where its history begins. `run_in_turns` then runs steps in a given order
in two or three sessions: each begins while the one before it is still uncommitted, is seen to wait
for it (or to need nothing of it), and goes on when that one commits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from tests.py.convergence.lockstep import TENANT, USER
from tests.py.convergence.payloads import WORDS, response
from tests.py.convergence.talks import ACCEPT
from tests.py.support.sessions import Connection, Running, rows, value
from tests.py.support.waiting import eventually

Statement = tuple[str, tuple[object, ...]]
Step = Callable[[], Statement]
ALL_SHARDS = "{0,1,2,3,4,5,6,7}"


class Job:
    """A task of its own project, and the statements that may happen to it."""

    def __init__(self, outside: Connection, *, policy: str = "keep") -> None:
        self.outside = outside
        self.project = uuid4()
        self.deliveries = 0
        rows(outside, "insert into aivedio.project_settings values (%s, %s)", self.project, policy)
        ((self.task, self.attempt),) = rows(
            outside,
            "select task_id, attempt_id from aivedio.create_task("
            "%s, %s, %s, 'lumen', 'model-1', '{}', null, null)",
            *(TENANT, self.project, USER),
        )
        self.attempts = [self.attempt]
        self.tokens: dict[UUID, str] = {}
        self._claim()

    # Before the history

    def _claim(self) -> None:
        for attempt, hook in rows(
            self.outside,
            "select attempt_id, body ->> 'hook' from aivedio.claim_submits('w', 100, 'https://us')",
        ):
            self.tokens[attempt] = hook.rsplit("/", 1)[1]

    def submitted(self) -> Job:
        """Have the provider accept it; a poll of it is held by a worker."""
        query, arguments = self.accept()
        rows(self.outside, query, *arguments)
        self.hold_poll()
        return self

    def hold_poll(self) -> int:
        """Let a worker lease the poll of the current attempt, taking it over if one holds it."""
        rows(
            self.outside,
            "update aivedio.task_attempts set next_poll_at = now(), poll_lease_until = null"
            " where id = %s",
            self.attempt,
        )
        held: dict[UUID, int] = dict(
            rows(self.outside, "select attempt_id, lease_token from aivedio.claim_polls('w', 100)")
        )
        self.poll_token = held[self.attempt]
        return self.poll_token

    def tried_again(self) -> Job:
        """Start a second attempt, because the first is overdue; it is submitted and polled."""
        self.overdue()
        self.attempt = value(
            self.outside,
            "select attempt_id from aivedio.start_attempt(%s, %s, %s, 'ops', 'overdue')",
            *(TENANT, self.project, self.task),
        )
        self.attempts.append(self.attempt)
        self._claim()
        return self.submitted()

    def overdue(self) -> None:
        rows(
            self.outside,
            "update aivedio.task_attempts set deadline_at = now() - interval '1 s' where id = %s",
            self.attempt,
        )

    def after(self, *steps: Step) -> Job:
        """Let steps happen, one after the other."""
        for step in steps:
            query, arguments = step()
            rows(self.outside, query, *arguments)
        return self

    def close(self) -> None:
        """Leave nothing that a later history would be handed."""
        rows(
            self.outside,
            "update aivedio.task_attempts"
            " set submit_lease_until = 'tomorrow', next_poll_at = 'tomorrow'"
            " where project_id = %s and terminal_at is null",
            self.project,
        )

    # Steps

    def accept(self) -> Statement:
        return self._answer(response(201, {"id": self._job(self.attempt)}))

    def submit_times_out(self) -> Statement:
        return self._answer({"kind": "timeout", "error": "ReadTimeout"})

    def _answer(self, outcome: dict[str, Any]) -> Statement:
        token = value(
            self.outside,
            "select submit_token from aivedio.task_attempts where id = %s",
            self.attempt,
        )
        return (
            "select verdict from aivedio.settle_submit(%s, %s, %s)",
            (self.attempt, token, Jsonb(outcome)),
        )

    def lose_submit(self) -> Statement:
        """The lease of the submission runs out, and a worker comes by."""
        return (
            "with later as materialized ("
            "  select set_config('aivedio.now', (now() + interval '130 s')::text, true) as time"
            ") select count(*) from later, aivedio.claim_submits(left(later.time, 1), 100, 'us')",
            (),
        )

    def call_back(self, status: str, *, old: bool = False, **more: object) -> Step:
        """Return a step that delivers a callback and has it applied."""

        def step() -> Statement:
            self.deliveries += 1
            rows(self.outside, *_flat(self.deliver(status, old=old, **more)))
            return (
                "select applied, ignored from aivedio.process_inbox(%s::smallint[])",
                (ALL_SHARDS,),
            )

        return step

    def deliver(self, status: str, *, old: bool = False, **more: object) -> Statement:
        """Deliver the last callback, or for the first time."""
        attempt = self.attempts[0] if old else self.attempt
        word = next(w for w, meaning in WORDS["webhook"].items() if meaning == status)
        body = json.dumps({"id": self._job(attempt), "status": word, **more})
        headers = json.dumps({"webhook-id": f"{self.task}-{self.deliveries}"})
        token = _digest(self.tokens[attempt])
        return ACCEPT, ("lumen", headers, body, _digest(body), True, token)

    def hint(self) -> Statement:
        """Call without a signature."""
        token = _digest(self.tokens[self.attempt])
        return ACCEPT, ("lumen", "{}", "{}", _digest("{}"), False, token)

    def poll(self, status: str | None, token: int | None = None, **more: object) -> Step:
        """Return a step that answers the poll that is held; no status: it timed out."""
        token = self.poll_token if token is None else token
        attempt = self.attempt

        def step() -> Statement:
            outcome: dict[str, Any] = {"kind": "timeout", "error": "ReadTimeout"}
            if status:
                word = next(w for w, meaning in WORDS["poll"].items() if meaning == status)
                outcome = response(200, {"id": self._job(attempt), "status": word, **more})
            return (
                "select verdict from aivedio.settle_poll(%s, %s, %s)",
                (attempt, token, Jsonb(outcome)),
            )

        return step

    def cancel(self) -> Statement:
        return (
            "select verdict from aivedio.request_cancel(%s, %s, %s, %s)",
            (TENANT, self.project, self.task, USER),
        )

    def start_again(self) -> Statement:
        return (
            "select verdict from aivedio.start_attempt(%s, %s, %s, 'ops', 'why', 'once')",
            (TENANT, self.project, self.task),
        )

    def adopt_first(self) -> Statement:
        return (
            "select verdict from aivedio.adopt_attempt(%s, %s, %s, %s, 'ops', 'why')",
            (TENANT, self.project, self.task, self.attempts[0]),
        )

    def tell(self, consumer: str) -> Statement:
        """Bring the last message to open_media or book_credit."""
        message = value(
            self.outside,
            "select payload from aivedio.outbox_events where aggregate_id = %s"
            " order by id desc limit 1",
            self.task,
        )
        return f"select aivedio.{consumer}(%s)", (Jsonb(message),)

    def media(self) -> list[Step]:
        """Claim what there is to do; return a step for each that reports it done."""
        rows(self.outside, *_flat(self.tell("open_media")))
        held = rows(
            self.outside,
            "select operation_id, lease_token from aivedio.claim_media('w', 100)"
            " where task_id = %s",
            self.task,
        )
        return [partial(self.report, *operation) for operation in held]

    def report(self, operation: UUID, token: int) -> Statement:
        return (
            "select verdict from aivedio.report_media(%s, %s, %s)",
            (operation, token, Jsonb({"done": {"asset_id": "ast_1"}})),
        )

    def _job(self, attempt: UUID) -> str:
        return f"job-{attempt.hex}"

    # After it

    def ends(self) -> dict[str, object]:
        """Return where everything stands, without how it came there."""
        ((status, error, asked),) = rows(
            self.outside,
            "select status, error_code, cancel_requested_at is not null"
            " from aivedio.generation_tasks where id = %s",
            self.task,
        )
        attempts = rows(
            self.outside,
            "select status, submit_state, provider_task_id is not null"
            " from aivedio.task_attempts where task_id = %s order by attempt_no",
            self.task,
        )
        cases = rows(
            self.outside,
            "select kind from aivedio.reconciliation_cases"
            " where task_id = %s and state = 'open' order by kind",
            self.task,
        )
        return {
            "task": (status, error),
            "cancel asked": asked,
            "attempts": attempts,
            "cases": [kind for (kind,) in cases],
        }


def run_in_turns(conninfo: str, sessions: Sequence[Connection], steps: Sequence[Step]) -> list[int]:
    """
    Run steps in order, each begun while those before it are uncommitted; return who came when.

    With n sessions, n - 1 steps wait at a time; of two that wait, either may be next. Raises what a
    step raises, a deadlock above all.
    """
    came: list[int] = []
    begun: list[tuple[int, Running, Connection]] = []
    free = list(sessions)

    def commit_one() -> None:
        """Commit a step that is done, then wait until another has what it waited for."""
        done = next(entry for entry in begun if entry[1].is_done())
        number, running, session = done
        running.result()
        session.commit()
        begun.remove(done)
        came.append(number)
        free.append(session)
        if begun:
            eventually(
                lambda: any(entry[1].is_done() for entry in begun),
                20.0,
                "a step goes on when nobody is in its way",
            )

    with psycopg.connect(conninfo, autocommit=True) as watcher:
        for number, step in enumerate(steps):
            if not free:
                commit_one()
            session = free.pop(0)
            query, arguments = step()
            running = Running(session, query, *arguments)
            begun.append((number, running, session))
            eventually(
                lambda running=running, session=session: (  # type: ignore[misc]
                    running.is_done() or waits(watcher, session)
                ),
                20.0,
                "the step is done or waits for a lock",
            )
        while begun:
            commit_one()
    return came


def waits(watcher: Connection, session: Connection) -> bool:
    """Return whether a session waits for another one's lock."""
    blockers = value(watcher, "select pg_blocking_pids(%s)", session.info.backend_pid)
    return bool(blockers)


def _flat(statement: Statement) -> tuple[Any, ...]:
    query, arguments = statement
    return (query, *arguments)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
