"""
The state machine as the design words it: what an observation or a command does to a task.

Written from the rules, not from the SQL: an end ends, a job never goes back, an old attempt never
touches its task, the first end stays.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from uuid import UUID

from tests.py.convergence.things import (
    BEHIND_PROVIDER,
    ENDS,
    FINAL,
    LIFE,
    WAY,
    Attempt,
    Case,
    Event,
    Project,
    Provider,
    Seen,
    Stored,
    Task,
    Window,
    seconds,
)

CASE_MAY_FAIL = {"submit_unknown", "lost_submit", "overdue", "not_found"}
NOT_KNOWN = {"submit_unknown", "lost_submit", "not_found"}


class Refused(Exception):
    """A call that raises; the argument is the SQLSTATE."""


class Rules:
    """Tasks and what may change them."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.tasks: list[Task] = []
        self.cases: list[Case] = []
        self.visited: Counter[str] = Counter()

    @property
    def attempts(self) -> list[Attempt]:
        return [attempt for task in self.tasks for attempt in task.attempts]

    # Writing

    def emit(self, task: Task, status: str, source: str, attempt: Attempt | None = None) -> None:
        task.status = task.stage = status
        self._event(task, "task.status.changed", source, attempt)

    def _event(self, task: Task, kind: str, source: str, attempt: Attempt | None = None) -> None:
        number = (attempt or task.current).number
        task.events.append(Event(kind, task.status, task.stage, task.progress, source, number))

    def open_case(
        self, kind: str, subject: object, attempt: Attempt | None = None, *, once: bool = False
    ) -> None:
        """Open a case about an attempt, or about something else that may have led to one."""
        known = self.case(kind, subject)
        self.visited[f"case {kind}"] += 1
        if known is None:
            attempt = subject if isinstance(subject, Attempt) else attempt
            self.cases.append(Case(kind, attempt, self.now, subject))
        elif not once:
            known.facts = min(20, known.facts + 1)

    def case(self, kind: str, subject: object) -> Case | None:
        for case in self.cases:
            if case.kind == kind and case.subject == subject and case.resolution is None:
                return case
        return None

    def close_case(self, kind: str, attempt: Attempt, resolution: str) -> None:
        known = self.case(kind, attempt)
        if known:
            known.resolution = resolution

    def end_cases(self, attempt: Attempt) -> None:
        """Close what only waited for the attempt's end."""
        for kind in ("overdue", "not_found"):
            self.close_case(kind, attempt, "ended")

    def end(self, attempt: Attempt, status: str, error: str | None = None) -> None:
        """Give an attempt its own end: it is asked and told nothing more."""
        attempt.status = attempt.known = status
        attempt.error = error
        attempt.poll = None

    # Observations

    def observe(self, attempt: Attempt, seen: Seen) -> str:
        """Return the verdict on what a provider says, and do what follows from it."""
        task = attempt.task
        verdict, becomes = self._judge(attempt, seen)
        where = task.status if attempt.is_current else "an old attempt"
        self.visited[f"{where}, {seen.status}: {verdict}"] += 1
        discarded = False
        taken_for_over = attempt.submit in ("rejected", "withdrawn")
        if verdict == "applied":
            discarded = self._change(attempt, seen, becomes)
        if not _is_nothing_new(attempt, seen, verdict):
            task.ledger.append(Stored(attempt.number, seen.source, verdict, seen.status))
        if attempt.submit == "unknown":
            self.close_case("submit_unknown", attempt, "accepted")
        self._remember(attempt, seen, verdict)
        if verdict == "conflict":
            self.open_case("conflict", attempt)
        elif discarded or (verdict == "stale_attempt" and seen.status == "succeeded"):
            self.open_case("stale_success", attempt)
        elif seen.status in ("queued", "running") and taken_for_over:
            self.open_case("stale_success", attempt)
        return verdict

    def _judge(self, attempt: Attempt, seen: Seen) -> tuple[str, str]:
        task = attempt.task
        if not attempt.is_current:
            return "stale_attempt", ""
        if seen.status is None:
            return "unknown_word", ""
        if not _in_sequence(attempt, seen):
            return "stale_sequence", ""
        if task.status in BEHIND_PROVIDER:
            return self._judge_again(attempt, seen)
        if seen.status in ENDS:
            return "applied", seen.status
        if task.status == "provider_status_unknown":
            return "applied", "cancel_requested" if task.cancel_asked else _further(attempt, seen)
        if task.status == "cancel_requested":
            return self._progress(task, seen) if seen.status == "running" else ("duplicate", "")
        here, there = WAY.index(task.status), WAY.index(seen.status)
        if there > here:
            return "applied", seen.status
        if there < here:
            return "stale_status", ""
        return self._progress(task, seen) if seen.status == "running" else ("duplicate", "")

    def _judge_again(self, attempt: Attempt, seen: Seen) -> tuple[str, str]:
        """Compare with the attempt's own end: the first stays, but for a declared correction."""
        task = attempt.task
        assert attempt.over and seen.status
        if seen.status not in ENDS:
            return "after_terminal", ""
        if seen.status == attempt.status:
            return "duplicate", ""
        follows = (
            task.status in ("provider_succeeded", "processing_media")
            if attempt.status == "succeeded"
            else task.status == attempt.status
        )
        higher = seen.revision is not None and seen.revision > _or(attempt.revision, -1)
        if task.provider.corrects and higher and follows:
            return "applied", seen.status
        return "conflict", ""

    def _progress(self, task: Task, seen: Seen) -> tuple[str, str]:
        """Return whether progress is written: upward only, in steps, not too often."""
        before = task.progress or 0
        if (seen.progress or 0) <= before:
            return "duplicate", ""
        assert seen.progress is not None
        rests = task.progress_at and self.now < task.progress_at + seconds(task.project.pause)
        if seen.progress < before + task.project.step or rests:
            return "coalesced", ""
        return "applied", "progress"

    def _change(self, attempt: Attempt, seen: Seen, becomes: str) -> bool:
        """Write an applied observation; answer whether a success was thrown away."""
        task = attempt.task
        correction = attempt.over
        task.error = None
        if seen.status in ("queued", "running"):
            if seen.progress is not None:
                task.progress = max(task.progress or 0, seen.progress)
            task.progress_at = self.now
        if becomes == "progress":
            self._event(task, "task.progress.changed", seen.source)
            return False
        if seen.status == "succeeded":
            task.progress = task.progress_at = None
            if task.cancel_asked and task.project.policy == "discard" and not correction:
                self.emit(task, "canceled", seen.source)
                return True
            becomes = "provider_succeeded"
        elif seen.status == "failed":
            task.error = seen.error or "provider_failed"
        elif seen.status == "canceled" and not task.cancel_asked:
            task.error = seen.error or "canceled_by_provider"
        self.emit(task, becomes, seen.source)
        return False

    def _remember(self, attempt: Attempt, seen: Seen, verdict: str) -> None:
        """Let the attempt keep what was believed: its own way forward, and its own first end."""
        over = attempt.over
        believed = verdict in ("applied", "coalesced", "duplicate") or (
            verdict == "stale_attempt" and not over and _in_sequence(attempt, seen)
        )
        if seen.status in ENDS and (verdict == "applied" or (believed and not over)):
            assert seen.status
            self.end(attempt, seen.status, seen.error)
            attempt.given_up = False
            self.end_cases(attempt)
            attempt.seen_by = frozenset({seen.source})
            if attempt.cancel == "due":
                attempt.cancel = None
        elif seen.status in ENDS and verdict == "duplicate":
            attempt.seen_by |= {seen.source}
        elif believed and not over and seen.status:
            attempt.status = attempt.known = _further(attempt, seen)
            if seen.progress is not None:
                attempt.progress = max(_or(attempt.progress, seen.progress), seen.progress)
        elif verdict == "conflict" and attempt.poll is None:
            attempt.poll = Window.at(self.now + seconds(300))

        attempt.job = attempt.job or seen.job
        if attempt.submit != "accepted":
            attempt.submit = "accepted"
            if not attempt.over and attempt.poll is None:
                attempt.poll = Window.at(self.now + seconds(10))
        attempt.submitted = attempt.submitted or self.now
        if believed and seen.sequence is not None:
            attempt.sequence = max(_or(attempt.sequence, seen.sequence), seen.sequence)
        if believed and seen.revision is not None:
            attempt.revision = max(_or(attempt.revision, seen.revision), seen.revision)
        if seen.status:
            attempt.failures = 0

    # Commands

    def create(
        self, project: Project, provider: Provider, prompt: str, key: str | None, external: bool
    ) -> tuple[str, Task | None]:
        """Return the verdict and the known task; a new one is added by `created`."""
        known = project.keys.get(key) if key else None
        if known is None:
            return "applied", None
        if (known.provider, known.prompt, known.external) != (provider, prompt, external):
            raise Refused("VC410")
        return "duplicate", known

    def created(self, task: Task, attempt_id: UUID, key: str | None, life: float) -> None:
        if key:
            task.project.keys[key] = task
        self._attempt(task, attempt_id, None, life)
        self.tasks.append(task)
        self.emit(task, "created", "command")

    def _attempt(self, task: Task, attempt_id: UUID, key: str | None, life: float) -> None:
        deadline = self.now + seconds(life)
        number = len(task.attempts) + 1
        attempt = Attempt(task, number, attempt_id, self.now, deadline, key)
        attempt.submit = "application" if task.external else "due"
        task.attempts.append(attempt)
        task.current = attempt

    def request_cancel(self, task: Task) -> str:
        asked_already = task.cancel_asked and task.status not in FINAL
        if task.status in ("cancel_requested", "canceled") or asked_already:
            return "duplicate"
        if task.status in FINAL:
            return "refused"
        attempt = task.current
        if task.status in BEHIND_PROVIDER:
            if task.project.policy != "discard":
                return "refused"
            becomes = "canceled"
        elif task.status == "created":
            becomes = "canceled"
            self.end(attempt, "canceled")
            attempt.submit = "withdrawn"
        else:
            becomes = "cancel_requested"
            attempt.cancel = "due"
            attempt.cancel_due = Window.at(self.now)
        task.cancel_asked = True
        self.emit(task, becomes, "command")
        task.audit.append("request_cancel")
        return "applied"

    def start_attempt(self, task: Task, key: str | None) -> str:
        """Return the verdict; when it is applied, the caller calls `started`."""
        if key and any(attempt.key == key for attempt in task.attempts):
            return "duplicate"
        overdue = task.current.deadline < self.now
        on_the_way = ("submitted", "queued", "running", "cancel_requested")
        if task.status in ("failed", "canceled", "provider_status_unknown") or (
            overdue and task.status in on_the_way
        ):
            return "applied"
        return "refused"

    def started(self, task: Task, attempt_id: UUID, key: str | None, life: float) -> None:
        self._attempt(task, attempt_id, key, life)
        self._begin_again(task)
        self.emit(task, "created", "command")
        task.audit.append("start_attempt")

    def _begin_again(self, task: Task) -> None:
        task.progress = task.progress_at = task.error = None
        task.cancel_asked = False

    def adopt(self, attempt: Attempt) -> str:
        task = attempt.task
        if attempt.is_current:
            return "duplicate"
        has_result = task.status in ("provider_succeeded", "processing_media", "ready")
        if attempt.status != "succeeded" or has_result:
            return "refused"
        replaced = task.current
        if not replaced.over and replaced.submit in ("due", "application"):
            self.end(replaced, "canceled")
            replaced.submit = "withdrawn"
            replaced.cancel = None
        elif not replaced.over:
            replaced.cancel = "due"
            replaced.cancel_due = Window.at(self.now)
        task.current = attempt
        self._begin_again(task)
        self.emit(task, "provider_succeeded", "command")
        self.close_case("stale_success", attempt, "adopted")
        task.audit.append("adopt_attempt")
        return "applied"

    def resolve(self, case: Case, resolution: str) -> str:
        if resolution == "failed" and case.kind not in CASE_MAY_FAIL:
            raise Refused("VC904")
        if case.resolution:
            return "duplicate"
        attempt = case.attempt
        if resolution == "kept" and case.kind in NOT_KNOWN and attempt and not attempt.over:
            raise Refused("VC904")
        if resolution == "failed":
            assert attempt
            self._give_up(attempt, "timed_out" if case.kind == "overdue" else "submit_unknown")
        elif case.kind == "conflict" and attempt and attempt.over:
            attempt.poll = None
        elif case.kind == "overdue" and attempt and not attempt.over:
            attempt.deadline = self.now + seconds(LIFE)
        case.resolution = resolution
        if resolution == "failed" and attempt:
            self.end_cases(attempt)
        return "applied"

    def _give_up(self, attempt: Attempt, error: str) -> None:
        if attempt.over:
            return
        self.end(attempt, "failed", error)
        attempt.given_up = True
        attempt.cancel = None
        if attempt.submit != "accepted":
            attempt.submit = "rejected"
        if attempt.is_current:
            attempt.task.error = error
            self.emit(attempt.task, "failed", "command")


def _is_nothing_new(attempt: Attempt, seen: Seen, verdict: str) -> bool:
    """Return whether the ledger leaves it out: what repeats the known is only counted."""
    if verdict == "duplicate":
        return seen.status not in ENDS or seen.source in attempt.seen_by
    on_the_way = seen.status in ("queued", "running")
    return verdict == "coalesced" or (
        verdict == "stale_attempt" and seen.source == "poll" and on_the_way
    )


def _in_sequence(attempt: Attempt, seen: Seen) -> bool:
    """Return whether the provider's own count allows it: it rises, or repeats what is known."""
    if seen.sequence is None or attempt.sequence is None or seen.sequence > attempt.sequence:
        return True
    return seen.sequence == attempt.sequence and seen.status == attempt.known


def _further(attempt: Attempt, seen: Seen) -> str:
    """Return what is further on the way: what is known of the attempt, or what was just seen."""
    assert seen.status
    return max(attempt.known, seen.status, key=WAY.index)


def _or(value: int | None, other: int) -> int:
    return other if value is None else value
