"""The model's inbox: callbacks that wait, whose they are, and what becomes of them."""

from __future__ import annotations

from datetime import datetime

from tests.py.convergence.edges import HINT_REST, Edges, backoff, is_due, keep_outputs
from tests.py.convergence.things import Attempt, Delivery, Window, seconds

ORPHAN_TRIES = 2


class Arrivals(Edges):
    """Everything that providers say by themselves."""

    def __init__(self, now: datetime) -> None:
        super().__init__(now)
        self.inbox: list[Delivery] = []

    def accept_callback(self, delivery: Delivery) -> bool:
        """Store a delivery unless it is known; a hint is armed again, if that leads to a poll."""
        for known in self.inbox:
            if known.event == delivery.event:
                hinted = delivery.by_token if delivery.seen is None else None
                comes = hinted and not hinted.over and not self._hints_already(hinted)
                if comes and known.state in ("done", "dead"):
                    self.inbox.remove(known)
                    break
                return False
        self.inbox.append(delivery)
        return True

    def process_inbox(self, limit: int) -> list[Delivery]:
        waiting = [
            delivery
            for delivery in self.inbox
            if delivery.state == "pending"
            or (delivery.state == "retry" and is_due(delivery.due, self.now))
        ]
        # Whose they are is found before any of them is applied.
        claimed = [(delivery, self._owners(delivery)) for delivery in waiting[:limit]]
        for delivery, owners in claimed:
            self._process(delivery, owners)
        return [delivery for delivery, _ in claimed]

    def _owners(self, delivery: Delivery) -> list[Attempt]:
        by_job = [
            attempt
            for attempt in self.attempts
            if attempt.job == delivery.job is not None
            and attempt.task.provider is delivery.provider
        ]
        clues = [delivery.by_token, delivery.by_client, *by_job]
        return [attempt for attempt in clues if attempt]

    def _process(self, delivery: Delivery, owners: list[Attempt]) -> None:
        if len(set(owners)) > 1:
            delivery.state = "dead"
            self.open_case("mapping", delivery, owners[0])
        elif not owners:
            self._process_orphan(delivery)
        elif delivery.seen is None:
            self._hint(owners[0])
            delivery.state, delivery.verdict = "done", "hint"
        else:
            delivery.verdict = self.observe(owners[0], delivery.seen)
            keep_outputs(owners[0], delivery.seen, delivery.verdict)
            delivery.state = "done"

    def _process_orphan(self, delivery: Delivery) -> None:
        delivery.verdict = "orphan"
        if delivery.tries < ORPHAN_TRIES:
            delivery.state = "retry"
            delivery.due = backoff(self.now, 1, 1, 600, delivery.tries)
            delivery.tries += 1
            return
        delivery.state = "dead"
        self.open_case("orphan", (delivery.provider.name, delivery.job or delivery.event))

    def _hint(self, attempt: Attempt) -> None:
        if attempt.job is None or attempt.over or self._hints_already(attempt):
            return
        rest = seconds(HINT_REST)
        soon = self.now
        for before in (attempt.hinted, attempt.polled):
            if before is not None:
                soon = max(soon, before + rest)
        hinted = attempt.hinted
        attempt.poll = attempt.poll.earliest(Window.at(soon)) if attempt.poll else Window.at(soon)
        attempt.hinted = max(self.now, hinted + rest) if hinted is not None else self.now

    def _hints_already(self, attempt: Attempt) -> bool:
        return attempt.hinted is not None and attempt.hinted > self.now
