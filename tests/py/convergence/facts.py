"""Compares every row that the database holds of some projects with what the model says of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.py.convergence.follow_ups import Model
from tests.py.convergence.things import Attempt, Operation, Task, Window
from tests.py.support.sessions import Connection

SLACK = timedelta(milliseconds=1)

READ = """
select jsonb_build_object(
  'tasks', (
    select coalesce(jsonb_object_agg(task.id, to_jsonb(task)), '{}')
    from aivedio.generation_tasks as task where task.project_id = any (%(projects)s)
  ),
  'attempts', (
    select coalesce(jsonb_object_agg(attempt.id, to_jsonb(attempt)), '{}')
    from aivedio.task_attempts as attempt where attempt.project_id = any (%(projects)s)
  ),
  'operations', (
    select coalesce(jsonb_agg(to_jsonb(operation)), '[]')
    from aivedio.media_operations as operation where operation.project_id = any (%(projects)s)
  ),
  'credits', (
    select coalesce(jsonb_agg(to_jsonb(entry)), '[]')
    from aivedio.credit_ledger as entry where entry.project_id = any (%(projects)s)
  ),
  'outputs', (
    select coalesce(jsonb_agg(to_jsonb(output)), '[]')
    from aivedio.attempt_outputs as output
    join aivedio.task_attempts as attempt on attempt.id = output.attempt_id
    where attempt.project_id = any (%(projects)s)
  ),
  'cases', (
    select coalesce(jsonb_agg(
      jsonb_build_array(
        known.kind, known.attempt_id, jsonb_array_length(known.evidence), known.resolution
      )
    ), '[]')
    from aivedio.reconciliation_cases as known
  ),
  'ledger', (
    select coalesce(jsonb_agg(
      jsonb_build_array(
        seen.task_id, seen.attempt_id, seen.source, seen.verdict, seen.normalized_status
      )
      order by seen.id
    ), '[]')
    from aivedio.observations as seen where seen.project_id = any (%(projects)s)
  ),
  'audit', (
    select coalesce(jsonb_agg(
      jsonb_build_array(action.subject, action.action) order by action.id
    ), '[]')
    from aivedio.operator_actions as action
  ),
  'inbox', (
    select coalesce(jsonb_object_agg(inbox.dedup_key, to_jsonb(inbox) - 'payload'), '{}')
    from aivedio.provider_callback_inbox as inbox
  ),
  'streams', (
    select coalesce(jsonb_object_agg(stream.project_id, stream.last_event_id), '{}')
    from aivedio.project_streams as stream where stream.project_id = any (%(projects)s)
  ),
  'events', (
    select coalesce(jsonb_agg(
      to_jsonb(event) || jsonb_build_object('message', (
        select jsonb_agg(message.payload) from aivedio.outbox_events as message
        where message.aggregate_id = event.task_id
          and message.aggregate_version = event.task_version
      ))
      order by event.event_id
    ), '[]')
    from aivedio.task_events as event
    where event.project_id = any (%(projects)s) and event.event_id > %(after)s
  )
)
"""


class Comparison:
    """Reads the rows after each step; remembers where each project's stream stood."""

    def __init__(self, session: Connection, model: Model, projects: list[Any]) -> None:
        self._session = session
        self._model = model
        self._projects = projects
        self._heads: dict[str, int] = {str(project): 0 for project in projects}
        self._seen: dict[str, int] = {}
        self.differs = False
        self.messages: dict[tuple[str, int], Any] = {}
        with session.cursor() as cursor:
            cursor.execute("select coalesce(max(event_id), 0) from aivedio.task_events")
            ((self._after,),) = cursor.fetchall()

    def check(self) -> None:
        """Raise AssertionError with every difference; take over the times that were chosen."""
        with self._session.cursor() as cursor:
            cursor.execute(READ, {"projects": self._projects, "after": self._after})
            ((rows,),) = cursor.fetchall()
        numbers = {str(attempt.id): attempt.number for attempt in self._model.attempts}
        problems: list[str] = []
        self._check_events(rows, problems)
        for task in self._model.tasks:
            _same(problems, _name(task), _task(task), _task_row(rows["tasks"].get(str(task.id))))
            _same(
                problems,
                f"ledger of {_name(task)}",
                [tuple(stored) for stored in task.ledger],
                [(numbers[a], *rest) for t, a, *rest in rows["ledger"] if t == str(task.id)],
            )
            _same(
                problems,
                f"audit of {_name(task)}",
                task.audit,
                [action for subject, action in rows["audit"] if subject == str(task.id)],
            )
        for attempt in self._model.attempts:
            self._check_attempt(rows, attempt, problems)
        _same(problems, "number of tasks", len(self._model.tasks), len(rows["tasks"]))
        _same(problems, "number of attempts", len(self._model.attempts), len(rows["attempts"]))
        _same(
            problems,
            "cases",
            sorted(
                (c.kind, str(c.attempt.id) if c.attempt else "", c.facts, c.resolution or "")
                for c in self._model.cases
            ),
            sorted((kind, attempt or "", n, how or "") for kind, attempt, n, how in rows["cases"]),
        )
        for delivery in self._model.inbox:
            row = rows["inbox"].get(delivery.event)
            _same(
                problems,
                f"callback {delivery.event}",
                (delivery.state, delivery.verdict),
                row and (row["process_status"], row["verdict"]),
            )
            if row:
                what = f"next try of {delivery.event}"
                due = delivery.due if delivery.state == "retry" else None
                delivery.due = _pinned(problems, what, due, row["next_retry_at"])
        problems += [f"{_name(attempt)} is forgotten" for attempt in self._model.forgotten()]
        self.differs = bool(problems)
        assert not problems, "\n".join(problems)

    def _check_events(self, rows: dict[str, Any], problems: list[str]) -> None:
        """Each event names the one before it, and says once, everywhere, what the task became."""
        known = {str(task.id): task for task in self._model.tasks}
        numbers = {str(attempt.id): attempt.number for attempt in self._model.attempts}
        for event in rows["events"]:
            project, version = event["project_id"], event["task_version"]
            task = known[event["task_id"]]
            self._after = max(self._after, event["event_id"])
            _same(problems, "the chain", self._heads[project], event["prev_event_id"])
            self._heads[project] = event["event_id"]
            expected = self._seen.get(event["task_id"], 0) + 1
            self._seen[event["task_id"]] = expected
            _same(problems, f"version of {_name(task)}", expected, version)
            payload = event["public_payload"]
            told = (
                event["event_type"],
                payload["status"],
                payload["stage"],
                payload["progress"],
                event["source"],
                numbers[event["attempt_id"]],
            )
            modelled = tuple(task.events[version - 1]) if version <= len(task.events) else None
            _same(problems, f"event {version} of {_name(task)}", modelled, told)
            (message,) = event["message"] or [{}]
            _same(problems, "message", event["event_id"], message.get("event_id"))
            _same(problems, "message", event["prev_event_id"], message.get("prev_event_id"))
            _same(problems, "message", payload, message.get("public_payload"))
            _same(problems, "message", payload["status"], message.get("status"))
            self.messages[event["task_id"], version] = message
        for task in self._model.tasks:
            seen = self._seen.get(str(task.id), 0)
            _same(problems, f"events of {_name(task)}", len(task.events), seen)
        for project, head in rows["streams"].items():
            _same(problems, "head of the stream", self._heads[project], head)

    def _check_attempt(self, rows: dict[str, Any], attempt: Attempt, problems: list[str]) -> None:
        row = rows["attempts"].get(str(attempt.id))
        _same(problems, _name(attempt), _attempt(attempt), _attempt_row(row))
        if row is None:
            return
        name = _name(attempt)
        attempt.poll = _pinned(problems, f"next poll of {name}", attempt.poll, row["next_poll_at"])
        if attempt.submit == "due":
            attempt.submit_due = _pinned(
                problems, f"submission of {name}", attempt.submit_due, row["submit_due_at"]
            )
        if attempt.cancel == "due":
            attempt.cancel_due = _pinned(
                problems, f"cancellation of {name}", attempt.cancel_due, row["cancel_due_at"]
            )
        mine = [entry for entry in rows["credits"] if entry["attempt_id"] == str(attempt.id)]
        _same(
            problems,
            f"credits of {name}",
            attempt.credits,
            {entry["ledger_type"]: entry["amount"] for entry in mine},
        )
        outputs = [output for output in rows["outputs"] if output["attempt_id"] == str(attempt.id)]
        _same(
            problems,
            f"outputs of {name}",
            attempt.outputs,
            {output["ordinal"]: output["url"] is not None for output in outputs},
        )
        held = {o["operation_type"]: o for o in rows["operations"] if o["attempt_id"] == row["id"]}
        _same(problems, f"operations of {name}", set(attempt.operations), set(held))
        for kind, operation in attempt.operations.items():
            if found := held.get(kind):
                what = f"{kind} of {name}"
                _same(problems, what, _operation(operation), _operation_row(found))
                if operation.status == "pending":
                    due = _pinned(problems, what, operation.due, found["next_try_at"])
                    operation.due = due or operation.due


def _same(problems: list[str], what: str, model: object, database: object) -> None:
    if model != database:
        if isinstance(model, dict) and isinstance(database, dict) and set(model) == set(database):
            model = {key: kept for key, kept in model.items() if kept != database[key]}
            database = {key: database[key] for key in model}
        problems.append(f"{what}: the model says {model}, the database {database}")


def _pinned(
    problems: list[str], what: str, model: Window | None, found: str | None
) -> Window | None:
    """Return the time that the database chose, if it may."""
    when = datetime.fromisoformat(found) if found else None
    if model is None or when is None:
        if (model is None) != (when is None):
            problems.append(f"{what}: the model says {model}, the database {when}")
        return model
    if not model.low - SLACK <= when <= model.high + SLACK:
        problems.append(f"{what}: the model says {model}, the database {when}")
    return Window.at(when)


def _name(thing: Task | Attempt) -> str:
    if isinstance(thing, Task):
        return f"task {thing.prompt!r}"
    return f"attempt {thing.number} of {thing.task.prompt!r}"


def _task(task: Task) -> dict[str, object]:
    return {
        "status": task.status,
        "stage": task.stage,
        "progress": task.progress,
        "version": len(task.events),
        "over": task.status in ("ready", "failed", "canceled"),
        "cancel_asked": task.cancel_asked,
        "error": task.error,
        "asset": task.asset,
        "attempts": len(task.attempts),
        "current": str(task.current.id),
    }


def _task_row(row: dict[str, Any] | None) -> dict[str, object] | None:
    return row and {
        "status": row["status"],
        "stage": row["stage"],
        "progress": row["progress"],
        "version": row["version"],
        "over": row["terminal_at"] is not None,
        "cancel_asked": row["cancel_requested_at"] is not None,
        "error": row["error_code"],
        "asset": row["asset_id"],
        "attempts": row["attempt_count"],
        "current": row["current_attempt_id"],
    }


def _attempt(attempt: Attempt) -> dict[str, object]:
    return {
        "status": attempt.status,
        "known_status": attempt.known,
        "provider_task_id": attempt.job,
        "submit_state": attempt.submit,
        "submit_token": attempt.submit_token,
        "submit_tries": attempt.submit_tries,
        "last_provider_seq": attempt.sequence,
        "provider_revision": attempt.revision,
        "progress": attempt.progress,
        "error_code": attempt.error,
        "cancel_state": attempt.cancel,
        "cancel_token": attempt.cancel_token,
        "cancel_tries": attempt.cancel_tries,
        "lease_token": attempt.poll_token,
        "poll_count": attempt.polls,
        "poll_failures": attempt.failures,
        "leased": attempt.poll_lease is not None,
        "terminal": attempt.over,
        "seen_by": sorted(attempt.seen_by),
    }


def _attempt_row(row: dict[str, Any] | None) -> dict[str, object] | None:
    if row is None:
        return None
    derived = {"leased", "terminal", "seen_by"}
    found = {key: row[key] for key in ATTEMPT_KEYS if key not in derived}
    found["leased"] = row["poll_lease_until"] is not None
    found["terminal"] = row["terminal_at"] is not None
    found["seen_by"] = sorted(row["terminal_seen_by"])
    return found


def _operation(operation: Operation) -> dict[str, object]:
    return {
        "status": operation.status,
        "progress": operation.progress,
        "tries": operation.tries,
        "lease_token": operation.token,
        "leased": operation.lease is not None,
    }


def _operation_row(row: dict[str, Any]) -> dict[str, object]:
    keys = ("status", "progress", "tries", "lease_token")
    return {**{key: row[key] for key in keys}, "leased": row["lease_until"] is not None}


ATTEMPT_KEYS = (
    "status",
    "known_status",
    "provider_task_id",
    "submit_state",
    "submit_token",
    "submit_tries",
    "last_provider_seq",
    "provider_revision",
    "progress",
    "error_code",
    "cancel_state",
    "cancel_token",
    "cancel_tries",
    "lease_token",
    "poll_count",
    "poll_failures",
)
