"""
The script of one job: what a submission's `input.pretend` asks for.

    {"key": "job-7", "outcome": "succeeded", "faults": ["drop", "poll_error"], "run_s": 2}
    {"key": "job-8", "attempts": [{"outcome": "failed"}, {"outcome": "succeeded"}]}

`key` recognises the job when it is submitted again; the second form gives each submission a plan
of its own, the last one serving all that follow. Everything has a default: a submission without
`pretend` is a job that takes a while and succeeds. Times are seconds of the provider's clock,
which may run fast, except `slow_s`, which a caller's timeout must be able to notice.

Not every API passes an object of ours on. So a plan may also stand in any text of a submission,
after the word `pretend:`

    a red kite pretend:{"outcome": "failed"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from edge.pretend.faults import Fault

Outcome = Literal["succeeded", "failed", "canceled", "aborted"]

MAX_ATTEMPTS = 8
MAX_SECONDS = 3600.0
MAX_TIMES = 8
MAX_STEPS = 100
MAX_TEXT = 200
MAX_FILE = 4 * 1024 * 1024
MAX_PLACES = 1000

MARK = "pretend:"
_JSON = json.JSONDecoder()


class BadPlan(ValueError):
    """`input.pretend` is not a plan; the message says where."""


@dataclass(frozen=True, slots=True)
class Plan:
    """
    How one submission goes.

    A job whose outcome is `canceled` runs until somebody cancels it. `times` bounds the faults
    that repeat: so many polls or downloads go wrong, one after another.
    """

    key: str | None = None
    outcome: Outcome = "succeeded"
    faults: frozenset[Fault] = frozenset()
    queue_s: float = 2.0
    run_s: float = 12.0
    steps: int = 8
    delay_s: float = 3.0
    slow_s: float = 2.0
    times: int = 1
    error: str = "The model could not finish this video."
    file_bytes: int = 64 * 1024

    def has(self, fault: Fault) -> bool:
        """Answer whether this job is to misbehave so."""
        return fault in self.faults


def find(body: object) -> object | None:
    """Return what a submission holds for a plan, wherever it stands, or None."""
    left: list[object] = [body]
    for _ in range(MAX_PLACES):
        if not left:
            return None
        place = left.pop()
        if isinstance(place, Mapping):
            if "pretend" in place:
                found: object = place["pretend"]
                return found
            left.extend(place.values())
        elif isinstance(place, list):
            left.extend(place)
        elif isinstance(place, str) and MARK in place:
            return _in_text(place)
    return None


def _in_text(text: str) -> object:
    try:
        found: object = _JSON.raw_decode(text[text.index(MARK) + len(MARK) :].lstrip())[0]
    except (ValueError, RecursionError):
        raise BadPlan("pretend: must be followed by a JSON object") from None
    return found


def read_key(pretend: object) -> str | None:
    """Return the key of a plan that may still prove wrong, or None."""
    key = pretend.get("key") if isinstance(pretend, Mapping) else None
    return key if isinstance(key, str) and 0 < len(key) <= MAX_TEXT else None


def read(pretend: object, submission: int) -> Plan:
    """
    Return the plan of the submission with this number, the first being 1.

    Raises `BadPlan`: a script with a typing mistake must not run as another script.
    """
    if pretend is None:
        return Plan()
    if not isinstance(pretend, Mapping):
        raise BadPlan("pretend must be an object")
    fields = dict(pretend)
    attempts = fields.pop("attempts", None)
    if attempts is not None:
        if not isinstance(attempts, list) or not 0 < len(attempts) <= MAX_ATTEMPTS:
            raise BadPlan(f"pretend.attempts must be a list of 1 to {MAX_ATTEMPTS} plans")
        chosen = attempts[min(submission, len(attempts)) - 1]
        if not isinstance(chosen, Mapping):
            raise BadPlan("pretend.attempts must hold objects")
        fields |= chosen
    return _plan(fields)


def _plan(fields: dict[str, Any]) -> Plan:
    known: dict[str, Any] = {}
    for name, value in fields.items():
        match name:
            case "key" | "error":
                if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
                    raise BadPlan(f"pretend.{name} must be a text of 1 to {MAX_TEXT} characters")
                known[name] = value
            case "outcome":
                if value not in get_args(Outcome):
                    raise BadPlan(f"pretend.outcome must be one of {', '.join(get_args(Outcome))}")
                known[name] = cast(Outcome, value)
            case "faults":
                known[name] = _faults(value)
            case "queue_s" | "run_s" | "delay_s" | "slow_s":
                known[name] = float(_number(name, value, 0, MAX_SECONDS))
            case "times":
                known[name] = int(_number(name, value, 1, MAX_TIMES))
            case "steps":
                known[name] = int(_number(name, value, 1, MAX_STEPS))
            case "file_bytes":
                known[name] = int(_number(name, value, 64, MAX_FILE))
            case _:
                raise BadPlan(f"pretend.{name[:40]} is unknown")
    return Plan(**known)


def _faults(value: object) -> frozenset[Fault]:
    if not isinstance(value, list):
        raise BadPlan("pretend.faults must be a list")
    try:
        return frozenset(Fault(name) for name in value)
    except ValueError:
        raise BadPlan(f"pretend.faults must be among {', '.join(Fault)}") from None


def _number(name: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BadPlan(f"pretend.{name} must be a number from {least:g} to {most:g}")
    return value
