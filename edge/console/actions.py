"""
What an operator may do on the page: each action is one call of a stored function, with a reason.

`who` is the session's subject and never part of what is sent. What a function answers is shown as
it is, but for the prompt of a task, which is its user's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from edge.console.facts import Applied, Facts
from edge.console.problems import Refusal
from edge.gateway.asked import exact_id

LONGEST_REASON = 1000
_LONGEST_TEXT = 500
_MOST_LETTERS = 1000
_LARGEST_NUMBER = 2**53 - 1

Arguments = Mapping[str, Any]
Do = Callable[[Facts, Arguments, str, str], Awaitable[Any]]
Read = Callable[[object], Any]


@dataclass(frozen=True, slots=True)
class Action:
    """What it takes, and how it is done: with the facts, what was sent, who and why."""

    takes: Mapping[str, Read]
    do: Do
    needs_reason: bool = True


def arguments(action: Action, body: Mapping[str, object]) -> dict[str, Any]:
    """Return what the action takes out of a body. Raises `Refusal` for what does not fit."""
    if unknown := body.keys() - action.takes.keys() - {"reason"}:
        raise Refusal("bad_argument", f"There is no argument {sorted(unknown)[0][:50]!r}.")
    read = {}
    for name, reader in action.takes.items():
        try:
            read[name] = reader(body.get(name))
        except (ValueError, TypeError):
            raise Refusal("bad_argument", f"{name} is missing, or is none.") from None
    return read


def reason(action: Action, body: Mapping[str, object]) -> str:
    """Return why it is done. Raises `Refusal` where nothing is said."""
    given = body.get("reason", "")
    if not isinstance(given, str) or len(given) > LONGEST_REASON or "\0" in given:
        raise Refusal("bad_argument", f"reason is a text of at most {LONGEST_REASON} characters.")
    if action.needs_reason and not given.strip():
        raise Refusal("reason_missing")
    return given.strip() or "rehearsal"


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST_NUMBER:
        raise ValueError
    return value


def _numbers(value: object) -> list[int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_LETTERS:
        raise ValueError
    return [_number(each) for each in value]


def _text(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT or "\0" in value:
        raise ValueError
    return value


def _id(value: object) -> UUID:
    if not isinstance(value, str):
        raise ValueError
    return exact_id(value)


def _moment(value: object) -> datetime:
    if value is None:
        return datetime.now(UTC)
    if not isinstance(value, str):
        raise ValueError
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _replay(*, rehearse: bool) -> Do:
    async def do(facts: Facts, given: Arguments, who: str, why: str) -> Any:
        told: dict[str, Any] = await facts.db.value(
            "replay_callback",
            p_inbox=given["callback"],
            p_who=who,
            p_why=why,
            p_dry_run=rehearse,
        )
        for task in (told["before"], told["after"]):
            if task is not None:
                del task["prompt"]
        return told

    return do


def _once(function: str, otherwise: str, **names: str) -> Do:
    """Call a function that answers whether there was something to do."""

    async def do(facts: Facts, given: Arguments, who: str, why: str) -> bool:
        named = {parameter: given[name] for parameter, name in names.items()}
        if not await facts.db.value(function, **named, p_who=who, p_why=why):
            raise Refusal("unfit", otherwise)
        return True

    return do


async def _known_group(facts: Facts, group: str) -> str:
    if group not in await facts.bus():
        raise Refusal("not_found", "There is no such consumer group on the bus of this database.")
    return group


async def _requeue_letters(facts: Facts, given: Arguments, who: str, why: str) -> dict[str, Any]:
    messages = await facts.db.value(
        "requeue_dead_letters",
        p_group=await _known_group(facts, given["group"]),
        p_ids=given["letters"],
        p_who=who,
        p_why=why,
    )
    return {"messages": messages}


async def _purge_letters(facts: Facts, given: Arguments, who: str, why: str) -> dict[str, Any]:
    messages = await facts.db.value(
        "purge_dead_letters",
        p_group=await _known_group(facts, given["group"]),
        p_before=given["before"],
        p_who=who,
        p_why=why,
    )
    return {"messages": messages}


async def _resolve_case(facts: Facts, given: Arguments, who: str, why: str) -> dict[str, Any]:
    verdict = await facts.db.value(
        "resolve_case",
        p_case=given["case"],
        p_resolution=given["resolution"],
        p_who=who,
        p_reason=why,
    )
    return {"verdict": verdict}


async def _owned(facts: Facts, task: UUID) -> dict[str, Any]:
    """Return a task with its tenant and project, as the functions of commands want it."""
    for entry in await facts.history(task):
        if entry.kind == "task":
            owner = entry.detail
            return {
                "p_tenant": UUID(owner["tenant_id"]),
                "p_project": UUID(owner["project_id"]),
                "p_task": task,
            }
    raise Refusal("not_found")


def _outcome(applied: Applied, refused: str) -> dict[str, Any]:
    if applied.verdict == "refused":
        raise Refusal("unfit", refused)
    return dataclasses.asdict(applied)


async def _start_attempt(facts: Facts, given: Arguments, who: str, why: str) -> dict[str, Any]:
    owned = await _owned(facts, given["task"])
    applied = await facts.db.one(
        Applied, "start_attempt", **owned, p_who=who, p_reason=why, p_key=given["key"]
    )
    return _outcome(
        applied,
        "Its attempt may still end well: a task is started again once it has "
        "failed, was canceled, is unknown or is overdue.",
    )


async def _adopt_attempt(facts: Facts, given: Arguments, who: str, why: str) -> dict[str, Any]:
    owned = await _owned(facts, given["task"])
    applied = await facts.db.one(
        Applied, "adopt_attempt", **owned, p_attempt=given["attempt"], p_who=who, p_reason=why
    )
    return _outcome(applied, "That attempt has no result, or the task has one already.")


ACTIONS: Mapping[str, Action] = {
    "rehearse_callback": Action({"callback": _number}, _replay(rehearse=True), needs_reason=False),
    "replay_callback": Action({"callback": _number}, _replay(rehearse=False)),
    "requeue_callback": Action(
        {"callback": _number},
        _once(
            "requeue_callback",
            "It is neither dead nor waiting any more, or its payload is gone.",
            p_inbox="callback",
        ),
    ),
    "requeue_outbox": Action(
        {"message": _number},
        _once("requeue_outbox", "It is not parked any more.", p_id="message"),
    ),
    "requeue_dead_letters": Action({"group": _text, "letters": _numbers}, _requeue_letters),
    "purge_dead_letters": Action({"group": _text, "before": _moment}, _purge_letters),
    "resolve_case": Action({"case": _id, "resolution": _text}, _resolve_case),
    "resolve_alarm": Action(
        {"kind": _text, "subject": _text},
        _once(
            "resolve_alarm",
            "No such alarm is open any more.",
            p_kind="kind",
            p_subject="subject",
        ),
    ),
    "reset_circuit": Action(
        {"provider": _text, "credential": _text},
        _once(
            "reset_circuit",
            "That circuit is closed.",
            p_provider="provider",
            p_credential="credential",
        ),
    ),
    "start_attempt": Action({"task": _id, "key": _text}, _start_attempt),
    "adopt_attempt": Action({"task": _id, "attempt": _id}, _adopt_attempt),
}
