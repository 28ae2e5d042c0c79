"""The model's edges to providers: submissions, polls and cancellations."""

from __future__ import annotations

from datetime import datetime

from tests.py.convergence.rules import Rules
from tests.py.convergence.things import Attempt, Seen, Window, seconds

SUBMIT_LEASE = 120.0
SUBMIT_TRIES = 5
POLL_LEASE = 60.0
CANCEL_LEASE = 60.0
CANCEL_TRIES = 8
UNKNOWN_AFTER = 8
GRACE = 60.0
RARE = 600.0
POLL_CAP = 300.0
HINT_REST = 5.0
PACE = {"submitted": (2, 5), "queued": (10, 30), "running": (5, 15), "unknown": (60, 120)}


def backoff(now: datetime, low: float, high: float, cap: float, tries: int) -> Window:
    """Return when to try again: min(cap, base · 2^tries), give or take a fifth."""
    times = 2.0 ** min(max(tries, 0), 30)
    return Window.after(now, min(cap, low * times), min(cap, high * times))


def is_due(window: Window | None, now: datetime) -> bool:
    """Return whether a time has come that is known by now."""
    if window is None:
        return False
    assert window.low == window.high, "the database's choice was not taken over"
    return window.low <= now


class Edges(Rules):
    """Everything that is said to providers and heard from them."""

    def __init__(self, now: datetime) -> None:
        super().__init__(now)
        self.blocked: dict[str, datetime] = {}

    # Submissions

    def claim_submits(self) -> list[Attempt]:
        """Return the attempts that are handed out: each only while it surely was not accepted."""
        lost = [
            a for a in self.attempts if a.submit == "sent" and _before(a.submit_lease, self.now)
        ]
        handed = []
        for attempt in self.attempts:
            if attempt.submit != "due" or not (
                attempt.submit_due is None or is_due(attempt.submit_due, self.now)
            ):
                continue
            if attempt.is_current and attempt.task.status in ("created", "submitting"):
                self._send(attempt)
                handed.append(attempt)
            else:
                self._withdraw(attempt)
        for attempt in lost:
            self._lose(attempt)
        return handed

    def _send(self, attempt: Attempt) -> None:
        assert not attempt.in_doubt, "an attempt is submitted a second time"
        attempt.in_doubt = True
        attempt.status = attempt.known = "submitting"
        attempt.submit = "sent"
        attempt.submit_token += 1
        attempt.submit_tries += 1
        attempt.submit_lease = self.now + seconds(SUBMIT_LEASE)
        if attempt.task.status == "created":
            self.emit(attempt.task, "submitting", "submit")

    def _withdraw(self, attempt: Attempt) -> None:
        attempt.submit = "withdrawn"
        attempt.cancel = None
        self.end(attempt, "canceled")
        if attempt.is_current and attempt.task.status == "cancel_requested":
            self.emit(attempt.task, "canceled", "submit")

    def _lose(self, attempt: Attempt) -> None:
        """Nobody knows whether the provider has it: a case, never a second submission."""
        attempt.submit = "unknown"
        attempt.status = attempt.known = "submit_unknown"
        self.open_case("submit_unknown", attempt)

    def settle_submit(
        self, attempt: Attempt, token: int, meaning: str, job: str | None, wait: float = 0.0
    ) -> str:
        if attempt.submit_token != token:
            return "stale_attempt"
        if attempt.submit not in ("sent", "unknown", "accepted") and not attempt.given_up:
            return "duplicate"
        if meaning == "accepted":
            assert job
            return self.accept(attempt, job)
        if attempt.submit in ("accepted", "rejected") or attempt.submit == "unknown" == meaning:
            return "duplicate"
        if meaning == "unknown":
            self._lose(attempt)
            return "applied"
        attempt.in_doubt = False
        self.close_case("submit_unknown", attempt, "not_accepted")
        if meaning == "again" and attempt.submit_tries < SUBMIT_TRIES:
            attempt.submit = "due"
            attempt.status = attempt.known = "submitting"
            again = backoff(self.now, 2, 2, 60, attempt.submit_tries - 1)
            attempt.submit_due = again.latest(Window.at(self.now + seconds(wait)))
            return "applied"
        error = "provider_unreachable" if meaning == "again" else "provider_rejected"
        self.end(attempt, "failed", error)
        attempt.submit = "rejected"
        attempt.cancel = None
        if attempt.is_current and attempt.task.status in ("submitting", "cancel_requested"):
            attempt.task.error = error
            self.emit(attempt.task, "failed", "submit")
        return "applied"

    def accept(self, attempt: Attempt, job: str) -> str:
        """The provider has it under this id; what a callback has said meanwhile stands."""
        fresh = attempt.status in ("submitting", "submit_unknown")
        if attempt.job == job and not fresh:
            return "duplicate"
        if any(other.job == job and other is not attempt for other in self._siblings(attempt)):
            self.open_case("mapping", attempt)
            if attempt.submit in ("due", "application", "sent"):
                self._lose(attempt)
            return "conflict"
        late = attempt.submit == "withdrawn" or attempt.given_up
        attempt.job = job
        attempt.submit = "accepted"
        attempt.submitted = attempt.submitted or self.now
        if fresh:
            attempt.status = attempt.known = "submitted"
        if not attempt.over:
            attempt.poll = Window.after(self.now, *PACE["submitted"])
        if late:
            # It runs and costs, and nobody waits for it.
            self.open_case("stale_success", attempt)
            return "after_terminal"
        self.close_case("submit_unknown", attempt, "accepted")
        if fresh and attempt.is_current and attempt.task.status == "submitting":
            self.emit(attempt.task, "submitted", "submit")
        return "applied"

    def _siblings(self, attempt: Attempt) -> list[Attempt]:
        return [a for a in self.attempts if a.task.provider is attempt.task.provider]

    def record(self, attempt: Attempt, job: str) -> str:
        """An application, or an operator, says under which id the current attempt is held."""
        task = attempt.task
        assert attempt.is_current
        if attempt.job is not None:
            return "duplicate" if attempt.job == job else "refused"
        if attempt.submit == "sent" or (attempt.submit == "rejected" and not attempt.given_up):
            return "refused"
        if attempt.status == "created":
            self.emit(task, "submitting", "command")
            attempt.status = "submitting"
        verdict = self.accept(attempt, job)
        task.audit.append("record_submission")
        return verdict

    def watch(self) -> int:
        """Find the late ones that no poll would notice; answer how many there are."""
        late = [
            attempt
            for attempt in self.attempts
            if not attempt.over
            and attempt.submit in ("accepted", "unknown", "application")
            and attempt.deadline < self.now
            and (attempt.job is None or attempt.poll is None)
            and self.case("overdue", attempt) is None
            and self.case("submit_unknown", attempt) is None
        ]
        for attempt in late:
            self.open_case("overdue", attempt)
        return len(late)

    def forgotten(self) -> list[Attempt]:
        """Return attempts that may still end, and that nobody would ever hear of again."""
        return [
            attempt
            for attempt in self.attempts
            if not attempt.over
            and not (
                attempt.submit in ("due", "application", "sent")
                or (attempt.submit == "unknown" and self._was_asked("submit_unknown", attempt))
                or (attempt.submit == "accepted" and (attempt.poll or attempt.job is None))
            )
        ]

    def _was_asked(self, kind: str, attempt: Attempt) -> bool:
        return any(case.kind == kind and case.subject is attempt for case in self.cases)

    # Polls

    def claim_polls(self) -> list[Attempt]:
        """Return the attempts that may be asked now; a throttled provider's may be fewer."""
        return [
            attempt
            for attempt in self.attempts
            if is_due(attempt.poll, self.now)
            and attempt.job is not None
            and (attempt.poll_lease is None or attempt.poll_lease <= self.now)
            and not self.now < self.blocked.get(attempt.task.provider.name, self.now)
        ]

    def leased_for_poll(self, attempt: Attempt) -> None:
        attempt.poll_lease = self.now + seconds(POLL_LEASE)
        attempt.poll_token += 1

    def settle_poll(
        self, attempt: Attempt, token: int, meaning: str, seen: Seen | None, wait: float = 0.0
    ) -> str:
        if attempt.poll_token != token:
            return "stale_attempt"
        if attempt.poll_lease is None:
            return "duplicate"
        verdict = "duplicate"
        if seen:
            verdict = self.observe(attempt, seen)
            keep_outputs(attempt, seen, verdict)
        return self._schedule(attempt, meaning, seen, verdict, wait)

    def _schedule(
        self, attempt: Attempt, meaning: str, seen: Seen | None, verdict: str, wait: float
    ) -> str:
        fresh = attempt.submitted is not None and attempt.submitted + seconds(GRACE) > self.now
        too_early = meaning == "not_found" and fresh
        understood = seen is not None and seen.status is not None
        fault = not understood and meaning != "throttled" and not too_early
        attempt.failures = 0 if understood else attempt.failures + fault
        rare = Window.after(self.now, RARE, RARE)
        delay = self._pace(attempt.status, attempt.failures)
        if fault and attempt.failures >= UNKNOWN_AFTER and not attempt.over:
            if attempt.status != "unknown":
                verdict = self._lose_sight(attempt)
            delay = delay.latest(self._pace("unknown", 0))
        if too_early:
            delay = self._pace("submitted", 0)
        elif meaning == "not_found" and not attempt.over:
            self.open_case("not_found", attempt, once=True)
            delay = delay.latest(rare)
        attempt.poll = delay
        if attempt.over:
            conflict = self.case("conflict", attempt)
            attempt.poll = (
                backoff(self.now, 1800, 1800, 21600, attempt.polls)
                if conflict and conflict.opened > self.now - seconds(7 * 86400)
                else None
            )
        elif attempt.deadline < self.now:
            self.open_case("overdue", attempt, once=True)
            attempt.poll = delay.latest(rare)
        asked_at = attempt.poll_lease and attempt.poll_lease - seconds(POLL_LEASE)
        if attempt.hinted and asked_at and attempt.hinted > asked_at and attempt.poll:
            if not attempt.over:
                # Somebody said that there is news while the question was under way.
                soon = Window.at(max(self.now, attempt.hinted + seconds(HINT_REST)))
                attempt.poll = attempt.poll.earliest(soon)
        if meaning == "throttled":
            until = self.blocked.get(attempt.task.provider.name, self.now)
            until = self.blocked[attempt.task.provider.name] = max(until, self.now + seconds(wait))
            if attempt.poll:
                attempt.poll = attempt.poll.latest(Window.after(until, 1, 1))
        attempt.poll_lease = None
        attempt.polls += 1
        attempt.polled = self.now
        return verdict

    def _pace(self, status: str, failures: int) -> Window:
        low, high = PACE.get(status, PACE["queued"])
        return backoff(self.now, low, high, POLL_CAP, failures)

    def _lose_sight(self, attempt: Attempt) -> str:
        attempt.status = "unknown"
        open_ones = ("submitting", "submitted", "queued", "running", "cancel_requested")
        if not attempt.is_current or attempt.task.status not in open_ones:
            return "duplicate"
        self.emit(attempt.task, "provider_status_unknown", "poll")
        return "applied"

    # Cancellations

    def claim_cancels(self) -> list[Attempt]:
        handed = []
        for attempt in self.attempts:
            waits = attempt.cancel == "due" and is_due(attempt.cancel_due, self.now)
            lapsed = attempt.cancel == "sent" and not _before(self.now, attempt.cancel_lease)
            if attempt.over or attempt.job is None or not (waits or lapsed):
                continue
            if not attempt.task.provider.cancels:
                attempt.cancel = "unsupported"
            elif attempt.cancel_tries >= CANCEL_TRIES:
                attempt.cancel = "given_up"
            else:
                attempt.cancel = "sent"
                attempt.cancel_token += 1
                attempt.cancel_tries += 1
                attempt.cancel_lease = self.now + seconds(CANCEL_LEASE)
                handed.append(attempt)
        return handed

    def settle_cancel(self, attempt: Attempt, token: int, meaning: str) -> str:
        if attempt.cancel_token != token:
            return "stale_attempt"
        if attempt.cancel != "sent":
            return "duplicate"
        if meaning in ("accepted", "given_up"):
            attempt.cancel = meaning
        elif attempt.cancel_tries >= CANCEL_TRIES:
            attempt.cancel = "given_up"
        else:
            attempt.cancel = "due"
            attempt.cancel_due = backoff(self.now, 2, 2, 120, attempt.cancel_tries - 1)
            return "applied"
        if not attempt.over:
            soon = Window.after(self.now, 2, 2)
            attempt.poll = attempt.poll.earliest(soon) if attempt.poll else soon
        return "applied"


def keep_outputs(attempt: Attempt, seen: Seen, verdict: str) -> None:
    """Keep where the results of a success are, until they are published."""
    if attempt.task.status != "ready" and verdict != "stale_sequence":
        for place in range(1, seen.outputs + 1):
            attempt.outputs.setdefault(place, True)


def _before(when: datetime | None, other: datetime | None) -> bool:
    return when is not None and other is not None and when < other
