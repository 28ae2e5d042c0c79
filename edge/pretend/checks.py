"""
What a profile is put through: jobs with a script each, and the end that each must come to.

A case tells the pretend provider what to do and says what a correct system makes of it. It comes
from what the provider documents, by its dialect, and never from the profile that it judges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from edge.pretend.dialects.common import Dialect
from edge.pretend.faults import Fault
from edge.pretend.jobs import Moment, Phase
from edge.pretend.plan import Plan

SUCCEEDED, FAILED, CANCELED = "provider_succeeded", "failed", "canceled"

# A job that stays where it is until the check is over.
FOR_EVER = 3600.0
LONG_S = 20.0
LONG_QUEUE: dict[str, Any] = {"queue_s": FOR_EVER}
LONG_RUN: dict[str, Any] = {"queue_s": 0.0, "run_s": FOR_EVER, "steps": 100}

CALLBACK_FAULTS = (
    Fault.DUPLICATE,
    Fault.REORDER,
    Fault.DELAY,
    Fault.LATE,
    Fault.CONTRADICT,
    Fault.LIE,
    Fault.GARBLED,
    Fault.SKEWED,
    Fault.EARLY,
    Fault.EARLY_END,
)
POLL_FAULTS = (
    Fault.POLL_MISSING,
    Fault.POLL_THROTTLED,
    Fault.POLL_ERROR,
    Fault.POLL_MALFORMED,
    Fault.POLL_TRUNCATED,
    Fault.POLL_SLOW,
    Fault.POLL_DRIP,
    Fault.POLL_STALE,
    Fault.RESULT_ERROR,
)
SIGNATURES = {
    Fault.FORGED: "signature wrong",
    Fault.OUTDATED: "signature old",
    Fault.UNSIGNED: "signature missing",
}


@dataclass(frozen=True, slots=True)
class Case:
    """
    One job, and what must become of it.

    `polls` says whether polls are close, or so rare that only callbacks can tell. `reaches` are
    the statuses of which the task must come to have one; `refuses` is a callback fault that must be
    answered 401. `cancel` asks for a cancellation as soon as the task has one of these statuses,
    and `canceled` says whether the provider must hear of it.
    """

    name: str
    plan: dict[str, Any] = field(default_factory=dict)
    polls: Literal["close", "rare"] = "close"
    reaches: frozenset[str] = frozenset({SUCCEEDED})
    submissions: int = 1
    progress: bool = False
    refuses: Fault | None = None
    cancel: frozenset[str] = frozenset()
    canceled: bool | None = None


def cases(
    dialect: type[Dialect],
    *,
    calls_back: bool,
    own_address: bool,
    cancels: bool,
) -> list[Case]:
    """
    Return the cases of a provider.

    `calls_back`: callbacks reach us; `own_address`: each job's at an address of its own, so that
    one about another job is found out; `cancels`: the profile knows how to cancel.
    """
    found = _states(dialect)
    if calls_back:
        found += _callbacks(dialect)
    found += _cancellation(dialect, cancels)
    if calls_back and dialect.signs:
        found += [
            _job(name, fault, outcome="failed", reaches={FAILED}, refuses=fault, run_s=1.0)
            for fault, name in SIGNATURES.items()
            if dialect.signs_time or fault is not Fault.OUTDATED
        ]
    if calls_back:
        found += [
            _job(f"fault {fault}", fault)
            for fault in CALLBACK_FAULTS
            if own_address or fault is not Fault.LIE
        ]
    found += [_job(f"fault {fault}", fault, Fault.DROP, slow_s=0.5) for fault in POLL_FAULTS]
    found += [
        _job("fault unknown_word", Fault.UNKNOWN_WORD),
        _job("fault drop", Fault.DROP),
        _job("fault refused", Fault.REFUSED, reaches={FAILED}),
        # Without an answer only a callback can say that the provider has the job.
        _job("fault reply_lost", Fault.REPLY_LOST, reaches={"submitting", SUCCEEDED}),
    ]
    return found


def goes_on(plan: Plan) -> bool:
    """Answer whether a job outlasts the check."""
    return max(plan.queue_s, plan.run_s) >= LONG_S


def _states(dialect: type[Dialect]) -> list[Case]:
    gave_up = CANCELED if dialect.giving_up_cancels else FAILED
    found = [
        _job("poll running", Fault.DROP, reaches={"running"}, **LONG_RUN),
        _job("poll succeeded", Fault.DROP),
        _job("poll failed", Fault.DROP, outcome="failed", reaches={FAILED}),
        _job("poll given up", Fault.DROP, outcome="aborted", reaches={gave_up}),
    ]
    if dialect.shows_queue:
        found.insert(0, _job("poll queued", Fault.DROP, reaches={"queued"}, **LONG_QUEUE))
    if dialect.shows_progress:
        slow: dict[str, Any] = {"queue_s": 0.0, "run_s": LONG_S, "steps": 20}
        found.append(_job("poll progress", Fault.DROP, reaches={"running"}, progress=True, **slow))
    return found


def _callbacks(dialect: type[Dialect]) -> list[Case]:
    found = [
        _job("callback succeeded", polls="rare"),
        _job("callback failed", polls="rare", outcome="failed", reaches={FAILED}),
    ]
    if not dialect.tells_failure:
        found.pop()
    if Moment.START in dialect.moments:
        found.insert(0, _job("callback running", polls="rare", reaches={"running"}, **LONG_RUN))
    return found


def _cancellation(dialect: type[Dialect], cancels: bool) -> list[Case]:
    if not cancels:
        return [
            _job(
                "cancel (none)",
                cancel={"running"},
                canceled=False,
                reaches={SUCCEEDED},
                run_s=3.0,
            )
        ]
    waits = Phase.RUNNING not in dialect.cancelable
    ends = {CANCELED} if dialect.documents_cancel else {CANCELED, FAILED}
    found = [
        _job(
            "cancel",
            Fault.DROP,
            outcome="canceled",
            cancel={"queued"} if waits else {"running"},
            canceled=True,
            reaches=ends,
            **(LONG_QUEUE if waits else LONG_RUN),
        )
    ]
    if not dialect.cancel_erases and not waits:
        found.append(
            _job(
                "fault cancel_ignored",
                Fault.CANCEL_IGNORED,
                cancel={"running"},
                canceled=True,
                run_s=2.0,
            )
        )
    return found


def _job(
    name: str,
    *faults: Fault,
    reaches: set[str] | None = None,
    polls: Literal["close", "rare"] = "close",
    progress: bool = False,
    refuses: Fault | None = None,
    cancel: set[str] | None = None,
    canceled: bool | None = None,
    **plan: Any,
) -> Case:
    script = {"queue_s": 0.1, "run_s": 0.6, "steps": 3, "delay_s": 1.0, **plan}
    return Case(
        name,
        script | {"faults": [str(fault) for fault in faults]},
        polls,
        frozenset(reaches or {SUCCEEDED}),
        progress=progress,
        refuses=refuses,
        cancel=frozenset(cancel or ()),
        canceled=canceled,
    )
