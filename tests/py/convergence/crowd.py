"""A crowd of clients that do everything to a few hot tasks at once, each in its own session."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from tests.py.convergence.lockstep import TENANT, USER
from tests.py.convergence.payloads import WORDS, job_id, response
from tests.py.convergence.talks import ACCEPT
from tests.py.support.sessions import Connection, Rows, rows

TASK = "(select * from aivedio.generation_tasks order by id desc limit 24) as task"
SOME_TASK = f"(select * from {TASK} order by random() limit 1) as task"
SOME_ATTEMPT = f"""(
  select attempt.* from aivedio.task_attempts as attempt
  join {TASK} on task.id = attempt.task_id order by random() limit 1
) as attempt"""
STATUSES = ("queued", *["running"] * 6, "succeeded", "succeeded", "failed", "canceled")


class Crowd:
    """Clients, what they were answered, and what must never have happened."""

    def __init__(self, conninfo: str, clients: int) -> None:
        self.answers: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._conninfo = conninfo
        self._clients = clients
        self._projects = [uuid4() for _ in range(4)]
        self._in_doubt: set[UUID] = set()
        self._lock = Lock()
        self._stop = Event()
        self._keys = 0

    def run(self, seconds: float, until: frozenset[str] = frozenset()) -> None:
        """Let the clients work for `seconds`, then on until each answer in `until` was given."""
        clients = [
            Thread(target=self._live, args=(random.Random(number),), daemon=True)
            for number in range(self._clients)
        ]
        for client in clients:
            client.start()
        self._stop.wait(seconds)
        # Bounded: whoever never hears an answer reads it from `answers`.
        for _ in range(60):
            if until <= self.answers.keys() or self._stop.wait(1.0):
                break
        self._stop.set()
        for client in clients:
            client.join(60.0)
            assert not client.is_alive(), "a client hangs"

    def _live(self, chance: random.Random) -> None:
        moves = self._moves()
        names, weights = [*moves], [weight for weight, _ in moves.values()]
        try:
            with psycopg.connect(
                self._conninfo, autocommit=True, options="-c statement_timeout=60s"
            ) as session:
                while not self._stop.is_set():
                    (name,) = chance.choices(names, weights)
                    self._try(name, moves[name][1], session, chance)
        except Exception as error:
            self.wrong.append(f"a client ended: {error!r}")
            self._stop.set()

    def _try(
        self,
        name: str,
        move: Callable[[Connection, random.Random], Rows | None],
        session: Connection,
        chance: random.Random,
    ) -> None:
        try:
            answer = move(session, chance)
        except psycopg.Error as error:
            # Our own refusals are answers; anything else, a deadlock above all, is wrong.
            if not (error.sqlstate or "").startswith("VC"):
                self.wrong.append(f"{name}: {error.sqlstate} {error}")
                self._stop.set()
            self.answers[f"{name}: {error.sqlstate}"] += 1
            return
        for row in answer or [("nothing",)]:
            self.answers[f"{name}: {row[0]}"] += 1

    def _moves(self) -> dict[str, tuple[int, Callable[[Connection, random.Random], Rows | None]]]:
        return {
            "create": (4, self._create),
            "submit": (10, self._submit),
            "callback": (30, self._call_back),
            "inbox": (12, self._work),
            "poll": (20, self._poll),
            "cancel": (2, self._cancel),
            "tell the provider": (3, self._tell_cancel),
            "start": (5, self._start),
            "adopt": (4, self._adopt),
            "record": (2, self._record),
            "resolve": (4, self._resolve),
            "reconcile": (4, self._reconcile),
            "media": (12, self._media),
            "billing": (15, self._bill),
            "requeue": (2, self._requeue),
            "upkeep": (2, self._upkeep),
            "overdue": (2, self._overdue),
            "looks": (5, self._look),
        }

    # Users and operators

    def _create(self, session: Connection, chance: random.Random) -> Rows:
        with self._lock:
            self._keys += chance.random() < 0.3
            key = f"key-{self._keys - chance.randrange(3)}"
        return rows(
            session,
            "select verdict from aivedio.create_task(%s, %s, %s, %s, 'model-1', '{}', %s)",
            *(TENANT, chance.choice(self._projects), USER),
            *("lumen" if int(key[4:]) % 2 else "zephyr", key),
        )

    def _cancel(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select (aivedio.request_cancel(%s, task.project_id, task.id, %s)).verdict"
            f" from {SOME_TASK}",
            *(TENANT, USER),
        )

    def _start(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select (aivedio.start_attempt(%s, task.project_id, task.id, 'ops', 'why')).verdict"
            f" from (select * from {TASK} where task.attempt_count < 5"
            " order by random() limit 1) as task",
            TENANT,
        )

    def _adopt(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select (aivedio.adopt_attempt("
            "  %s, attempt.project_id, attempt.task_id, attempt.id, 'ops', 'why')).verdict"
            f" from {SOME_ATTEMPT}",
            TENANT,
        )

    def _record(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select (aivedio.record_submission(%s, task.project_id, task.id,"
            "  'job-' || replace(task.current_attempt_id::text, '-', ''), 'ops', 'why')).verdict"
            f" from {SOME_TASK}",
            TENANT,
        )

    def _resolve(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select aivedio.resolve_case(known.id, %s, 'ops', 'why') from ("
            "  select * from aivedio.reconciliation_cases where state = 'open'"
            "  order by random() limit 1) as known",
            chance.choice(["kept", "failed"]),
        )

    def _requeue(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select aivedio.requeue_callback(inbox.id, 'ops', 'why') from ("
            "  select * from aivedio.provider_callback_inbox where process_status <> 'done'"
            "  order by random() limit 1) as inbox",
        )

    def _overdue(self, session: Connection, chance: random.Random) -> Rows:
        rows(
            session,
            "update aivedio.task_attempts as attempt set deadline_at = now() - interval '1 s'"
            f" from {SOME_TASK} where attempt.id = task.current_attempt_id",
        )
        return []

    def _upkeep(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select aivedio.upkeep(%s) ->> 'ran'",
            chance.choice(["alarms", "purge", "media"]),
        )

    def _look(self, session: Connection, chance: random.Random) -> Rows:
        rows(session, f"select aivedio.why_waiting(task.id) from {SOME_TASK}")
        return []

    # Providers

    def _submit(self, session: Connection, chance: random.Random) -> Rows:
        claimed = rows(
            session,
            "select attempt_id, lease_token from aivedio.claim_submits('w', 4, 'https://us')",
        )
        with self._lock:
            twice = self._in_doubt & {attempt for attempt, _ in claimed}
            self._in_doubt |= {attempt for attempt, _ in claimed}
        if twice:
            self.wrong.append(f"submitted a second time: {twice}")
            self._stop.set()
        answers: Rows = []
        for attempt, token in claimed:
            kind = chance.choice(["accepted"] * 5 + ["not_sent", "rejected", "timeout"])
            outcome = {
                "accepted": response(201, {"id": job_id(attempt)}),
                "not_sent": {"kind": "not_sent", "error": "ConnectError"},
                "rejected": response(422, {}),
                "timeout": {"kind": "timeout", "error": "ReadTimeout"},
            }[kind]
            if kind == "not_sent":
                with self._lock:
                    self._in_doubt.discard(attempt)
            answers += rows(
                session,
                "select verdict from aivedio.settle_submit(%s, %s, %s)",
                *(attempt, token, Jsonb(outcome)),
            )
        return answers

    def _call_back(self, session: Connection, chance: random.Random) -> Rows | None:
        found = rows(session, f"select attempt.id, attempt.provider from {SOME_ATTEMPT}")
        for attempt, provider in found:
            body = json.dumps(
                {"id": job_id(attempt), "ref": str(attempt), **_news("webhook", chance)}
            )
            event = json.dumps({"webhook-id": f"{attempt}-{chance.randrange(30)}"})
            digest = hashlib.sha256(body.encode()).digest()
            return rows(session, ACCEPT, provider, event, body, digest, True, None)
        return None

    def _work(self, session: Connection, chance: random.Random) -> Rows | None:
        rows(
            session, "select aivedio.process_inbox('{0,1,2,3,4,5,6,7}', %s)", chance.randint(1, 50)
        )
        return None

    def _reconcile(self, session: Connection, chance: random.Random) -> Rows:
        return rows(
            session,
            "select (aivedio.apply_observation(jsonb_populate_record("
            "  null::aivedio.provider_observation, %s || jsonb_build_object("
            "    'attempt_id', attempt.id, 'provider', attempt.provider)))).verdict"
            f" from {SOME_ATTEMPT}",
            Jsonb({"source": "reconcile", "normalized_status": chance.choice(STATUSES)}),
        )

    def _poll(self, session: Connection, chance: random.Random) -> Rows:
        if chance.random() < 0.5:
            rows(
                session,
                "update aivedio.task_attempts as attempt set next_poll_at = now()"
                f" from {SOME_TASK} where attempt.task_id = task.id"
                " and attempt.next_poll_at is not null",
            )
        answers: Rows = []
        for attempt, token in rows(
            session, "select attempt_id, lease_token from aivedio.claim_polls('w', 4)"
        ):
            outcome: dict[str, Any] = response(
                200, {"id": job_id(attempt), **_news("poll", chance)}
            )
            if chance.random() < 0.3:
                outcome = {"kind": "timeout", "error": "ReadTimeout"}
            answers += rows(
                session,
                "select verdict from aivedio.settle_poll(%s, %s, %s)",
                *(attempt, token, Jsonb(outcome)),
            )
        return answers

    def _tell_cancel(self, session: Connection, chance: random.Random) -> Rows:
        answers: Rows = []
        for attempt, token in rows(
            session, "select attempt_id, lease_token from aivedio.claim_cancels('w', 4)"
        ):
            answers += rows(
                session,
                "select verdict from aivedio.settle_cancel(%s, %s, %s)",
                *(attempt, token, Jsonb(response(chance.choice([200, 409, 500]), {}))),
            )
        return answers

    # Consumers

    def _message(self, session: Connection, call: str) -> Rows:
        return rows(
            session,
            f"select aivedio.{call}(message.payload) from ("
            "  select * from aivedio.outbox_events order by id desc limit 200) as message"
            " order by random() limit 1",
        )

    def _bill(self, session: Connection, chance: random.Random) -> Rows:
        return self._message(session, "book_credit")

    def _media(self, session: Connection, chance: random.Random) -> Rows:
        answers = rows(
            session,
            "select aivedio.open_media(message.payload) from aivedio.outbox_events as message"
            f" join {SOME_TASK} on task.id = message.aggregate_id"
            " where message.payload ->> 'status' = 'provider_succeeded'",
        )
        for operation, token in rows(
            session, "select operation_id, lease_token from aivedio.claim_media('w', 3)"
        ):
            report = chance.choice(
                [{"done": {"asset_id": "ast_1"}}] * 4 + [{"progress": 30}, {"failed": "codec"}]
            )
            answers += rows(
                session,
                "select verdict from aivedio.report_media(%s, %s, %s)",
                *(operation, token, Jsonb(report)),
            )
        return answers


def _news(source: str, chance: random.Random) -> dict[str, Any]:
    status = chance.choice(STATUSES)
    word = next(word for word, meaning in WORDS[source].items() if meaning == status)
    return {
        "status": word,
        "pct": chance.randrange(100),
        "seq": chance.choice([None, None, chance.randrange(40)]),
        "rev": chance.choice([None, chance.randrange(6)]),
        "out": ["https://provider.example/1.mp4"] if status == "succeeded" else None,
    }
