"""What came of the jobs of a check, and whether it is what their cases say."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge.pretend import checks
from edge.pretend.checks import Case
from edge.pretend.studio import Studio

_ENDS = frozenset({checks.SUCCEEDED, checks.FAILED, checks.CANCELED})


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was tried, what came of it, and whether that is right."""

    name: str
    seen: str
    ok: bool


@dataclass(slots=True)
class Tried:
    """A case and the task that it became: the statuses that the task has had, and its progress."""

    case: Case
    key: str
    task: uuid.UUID | None = None
    statuses: list[str] = field(default_factory=list)
    progress: int = 0
    asked_to_cancel: bool = False


def note(one: Tried, payload: Mapping[str, Any]) -> None:
    """Enter what an event says of a job."""
    status = str(payload["status"])
    if status not in one.statuses[-1:]:
        one.statuses.append(status)
    one.progress = max(one.progress, payload.get("progress") or 0)


def is_done(one: Tried, studio: Studio) -> bool:
    """Whether nothing more can be expected of a job."""
    if not _reached(one):
        return False
    if one.case.progress and not one.progress:
        return False
    jobs = studio.book.with_key(one.key)
    return all(job.over.is_set() or checks.goes_on(job.plan) for job in jobs)


def _reached(one: Tried) -> bool:
    return bool(one.case.reaches & set(one.statuses))


def row_of(one: Tried, studio: Studio) -> Row:
    """Return the line about a job: the statuses that it has had, and what is wrong with it."""
    wrong = list(_wrong(one, studio))
    seen = " → ".join(one.statuses) or "nothing"
    return Row(one.case.name, "; ".join([seen, *wrong]), not wrong)


def _wrong(one: Tried, studio: Studio) -> Iterator[str]:
    case = one.case
    jobs = studio.book.with_key(one.key)
    if not _reached(one):
        yield f"must become {' or '.join(sorted(case.reaches))}"
    ends = [status for status in one.statuses if status in _ENDS]
    if len(ends) > 1 or ends and ends[0] not in case.reaches:
        yield f"ended as {' and '.join(ends)}"
    if (count := studio.book.submissions_of(one.key)) != case.submissions:
        yield f"was submitted {count} times"
    if case.progress and not one.progress:
        yield "shows no progress"
    if case.canceled is not None and bool(sum(job.cancels for job in jobs)) != case.canceled:
        heard = "never heard" if case.canceled else "heard"
        yield f"its provider {heard} of the cancellation"
    deliveries = [delivery for job in jobs for delivery in job.deliveries]
    for delivery in deliveries:
        refused = case.refuses is not None and delivery.fault == case.refuses
        if refused and delivery.answer != 401:
            yield f"a callback with a {case.name} was answered {delivery.answer}"
        if delivery.fault is None and not delivery.accepted and not takes_callbacks(studio):
            yield f"a true callback was answered {delivery.answer or delivery.error}"
    if case.refuses is not None and not any(one.fault == case.refuses for one in deliveries):
        yield "no such callback was sent"
    if case.polls == "rare" and not any(delivery.accepted for delivery in deliveries):
        yield "no callback was taken"


def submissions(tried: list[Tried], studios: Mapping[str, Studio]) -> Row:
    """Return the line about submissions: how many jobs, and how often the provider was asked."""
    asked = sum(studio.book.submissions for studio in studios.values())
    accepted = sum("submitted" in one.statuses for one in tried)
    ok = asked == len(tried) and accepted > 0
    return Row("submit", f"{len(tried)} jobs, {asked} submissions, {accepted} accepted", ok)


def takes_callbacks(studio: Studio) -> bool:
    """Whether any true callback was taken: then one that was not met a busy machine."""
    return any(
        delivery.accepted and delivery.fault is None
        for job in studio.book.newest_first()
        for delivery in job.deliveries
    )
