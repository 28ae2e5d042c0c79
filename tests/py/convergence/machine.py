"""Random histories: hypothesis chooses what happens next, `History` holds the database to it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.py.convergence.moves import Moves, counts, one, percents, pick, rarely, statuses, take
from tests.py.convergence.payloads import job_of
from tests.py.convergence.things import Attempt, Seen, Task


class Histories(Moves):
    """Everything that the world may do to some tasks, in any order and any number of times."""

    # Submissions

    @precondition(lambda self: self._any(submit=("due",)))
    @rule(at=pick)
    def submit_without_a_fault(self, at: int) -> None:
        for attempt in self.history.claim_submits():
            self.history.settle_submit(attempt, "accepted")

    @precondition(lambda self: self._any(submit=("due", "sent")))
    @rule()
    def claim_submits(self) -> None:
        for attempt in self.history.claim_submits():
            self.submissions.append((attempt, attempt.submit_token))

    @precondition(lambda self: self.submissions)
    @rule(
        at=pick,
        answer=st.sampled_from(
            ["accepted", "accepted", "accepted", "rejected", "not_sent", "busy", "timeout"]
            + ["broken", "nameless"]
        ),
        keep=st.booleans(),
        foreign=rarely,
    )
    def settle_submit(self, at: int, answer: str, keep: bool, foreign: bool) -> None:
        attempt, token = take(self.submissions, at, keep=keep)
        jobs = [other.job for other in self.model.attempts if other.job and other is not attempt]
        job = one(jobs, at) if foreign and jobs else None
        self.history.settle_submit(attempt, answer, token=token, job=job)

    # Callbacks

    def _speaks_of(self, at: int) -> Attempt:
        """Return an attempt that the provider may have; now and then one that we did not submit."""
        submitted = [a for a in self.model.attempts if a.submit_tries > 0 or a.job]
        return one(submitted if submitted and at % 10 else self.model.attempts, at)

    @rule(
        at=pick,
        status=statuses,
        progress=percents,
        sequence=counts,
        revision=counts,
        outputs=st.integers(0, 2),
        nsfw=st.booleans(),
        clues=st.sampled_from(["token client job", "token", "client job", "job", "token job"]),
        now=st.booleans(),
    )
    def call_back(
        self,
        at: int,
        status: str | None,
        progress: int | None,
        sequence: int | None,
        revision: int | None,
        outputs: int,
        nsfw: bool,
        clues: str,
        now: bool,
    ) -> None:
        attempt = self._speaks_of(at)
        seen = self._seen("webhook", attempt, status, progress, sequence, revision, outputs, nsfw)
        event = self.history.callback(attempt, seen, clues=clues)
        self.delivered.append((attempt, seen, event))
        if now:
            self.history.work()

    @precondition(lambda self: self.delivered)
    @rule(at=pick, same_event=st.booleans())
    def call_back_again(self, at: int, same_event: bool) -> None:
        attempt, seen, event = one(self.delivered, at)
        self.history.callback(attempt, seen, event=event if same_event else None)

    @precondition(lambda self: len(self.model.attempts) > 1)
    @rule(at=pick, other=pick)
    def call_back_confused(self, at: int, other: int) -> None:
        attempt = self._speaks_of(at)
        seen = self._seen("webhook", attempt, "succeeded")
        alike = [a for a in self.model.attempts if a.task.provider is attempt.task.provider]
        self.history.callback(attempt, seen, clues="token client", other=one(alike, other))

    @precondition(lambda self: any(a.token for a in self.model.attempts))
    @rule(at=pick)
    def hint(self, at: int) -> None:
        self.history.hint(one([a for a in self.model.attempts if a.token], at))

    @precondition(lambda self: any(d.state in ("pending", "retry") for d in self.model.inbox))
    @rule(limit=st.sampled_from([1, 50]))
    def work(self, limit: int) -> None:
        self.history.work(limit)

    @rule(at=pick, status=statuses, progress=percents, sequence=counts, revision=counts)
    def reconcile(
        self,
        at: int,
        status: str | None,
        progress: int | None,
        sequence: int | None,
        revision: int | None,
    ) -> None:
        attempt = self._speaks_of(at)
        seen = self._seen("reconcile", attempt, status, progress, sequence, revision)
        self.history.see(attempt, seen)

    def _seen(
        self,
        source: str,
        attempt: Attempt,
        status: str | None,
        progress: int | None = None,
        sequence: int | None = None,
        revision: int | None = None,
        outputs: int = 0,
        nsfw: bool = False,
    ) -> Seen:
        """Return what a profile makes of a payload that holds all this."""
        error = {
            "failed": "content_refused" if nsfw else "provider_failed",
            "canceled": "canceled_by_provider",
        }.get(status or "")
        return Seen(
            source,
            status,
            progress if status in ("queued", "running") else None,
            sequence,
            revision if attempt.task.provider.corrects else None,
            attempt.job or job_of(attempt),
            error,
            outputs if status == "succeeded" else 0,
        )

    # Polls

    @precondition(lambda self: any(a.poll and a.job for a in self.model.attempts))
    @rule(wait=st.booleans(), at=pick)
    def claim_polls(self, wait: bool, at: int) -> None:
        if wait:
            due = [attempt.poll for attempt in self.model.attempts if attempt.poll]
            self.history.advance_to(one(due, at) if due else None)
        for attempt in self.history.claim_polls():
            self.polls.append((attempt, attempt.poll_token))

    @precondition(lambda self: self.polls)
    @rule(
        at=pick,
        answer=st.sampled_from(["not_found", "busy", "timeout", "broken", "malformed"])
        | statuses.map(lambda status: ("saw", status)),
        progress=percents,
        sequence=counts,
        revision=counts,
        outputs=st.integers(0, 2),
        keep=st.booleans(),
    )
    def settle_poll(
        self,
        at: int,
        answer: str | tuple[str, str | None],
        progress: int | None,
        sequence: int | None,
        revision: int | None,
        outputs: int,
        keep: bool,
    ) -> None:
        attempt, token = take(self.polls, at, keep=keep)
        if isinstance(answer, str):
            self.history.settle_poll(attempt, answer, token=token)
            return
        seen = self._seen("poll", attempt, answer[1], progress, sequence, revision, outputs)
        self.history.settle_poll(attempt, seen, token=token)

    @precondition(lambda self: any(a.job and not a.over for a in self.model.attempts))
    @rule(at=pick)
    def lose_sight(self, at: int) -> None:
        """Eight polls in a row fail."""
        attempt = one([a for a in self.model.attempts if a.job and not a.over], at)
        for _ in range(8):
            if attempt.poll is None or attempt.over:
                return
            self.history.advance_to(attempt.poll)
            if attempt in self.history.claim_polls():
                self.history.settle_poll(attempt, "timeout")

    # Cancellations

    @precondition(lambda self: self._any(cancel=("due", "sent")))
    @rule()
    def claim_cancels(self) -> None:
        for attempt in self.history.claim_cancels():
            self.cancels.append((attempt, attempt.cancel_token))

    @precondition(lambda self: self.cancels)
    @rule(at=pick, answer=st.sampled_from(["confirmed", "refused", "broken"]), keep=st.booleans())
    def settle_cancel(self, at: int, answer: str, keep: bool) -> None:
        attempt, token = take(self.cancels, at, keep=keep)
        self.history.settle_cancel(attempt, answer, token=token)

    # Media and credits

    def _told(self) -> list[Task]:
        return [t for t in self.model.tasks if any(a.status == "succeeded" for a in t.attempts)]

    @precondition(lambda self: self._told())
    @rule(at=pick, version=pick, latest=st.booleans())
    def tell_media(self, at: int, version: int, latest: bool) -> None:
        task = one(self._told(), at)
        events = len(task.events)
        self.history.tell_media(task, events if latest else version % events + 1)

    @rule(at=pick, version=pick, price=st.none() | st.integers(0, 3))
    def tell_billing(self, at: int, version: int, price: int | None) -> None:
        task = one(self.model.tasks, at)
        if price is not None:
            self.history.reprice(task.provider, price)
        self.history.tell_billing(task, version % len(task.events) + 1)

    @precondition(lambda self: any(o.status != "done" for o in self._operations()))
    @rule()
    def claim_media(self) -> None:
        for operation in self.history.claim_media():
            self.held.append((operation, operation.token))

    @precondition(lambda self: self.held)
    @rule(
        at=pick,
        report=st.sampled_from(["progress", "done", "done", "done", "failed", "hopeless"]),
        progress=st.integers(-1, 120),
        asset=st.sampled_from([None, "ast_1", "ast_2"]),
        keep=st.booleans(),
    )
    def report(self, at: int, report: str, progress: int, asset: str | None, keep: bool) -> None:
        operation, token = take(self.held, at, keep=keep)
        self.history.report(
            operation,
            token=token,
            progress=progress,
            done=report == "done",
            asset=asset,
            failed=report in ("failed", "hopeless"),
            retry=report == "failed",
        )

    @precondition(lambda self: any(o.status == "running" for o in self._operations()))
    @rule(times=st.integers(1, 5))
    def lose_media(self, times: int) -> None:
        """Worker after worker claims what there is to do, and is never heard of again."""
        for _ in range(times):
            self.history.advance(61)
            self.history.claim_media()
        self.history.advance(61)
        while self.history.give_up_media():
            pass

    @precondition(lambda self: any(self.model.is_wanted(a) for a in self.model.attempts))
    @rule(at=pick, steps=st.integers(1, 4))
    def publish(self, at: int, steps: int) -> None:
        """The media plane works without a fault, for some operations."""
        wanted = [a for a in self.model.attempts if self.model.is_wanted(a)]
        task = one(wanted, at).task
        self.history.tell_media(task, len(task.events))
        for _ in range(steps):
            held = [o for o in self.history.claim_media() if o.attempt.task is task]
            for operation in held:
                self.history.report(operation, done=True, asset="ast_3")
