"""What follows from a change, in the model: the media plane's operations and the credit ledger."""

from __future__ import annotations

from tests.py.convergence.arrivals import Arrivals
from tests.py.convergence.edges import is_due
from tests.py.convergence.rules import Refused
from tests.py.convergence.things import (
    OPERATIONS,
    STAGES,
    Attempt,
    Operation,
    Task,
    Window,
    seconds,
)

MEDIA_LEASE = 60.0
MEDIA_TRIES = 5
ENTRIES = {
    "ready": "settle",
    "failed": "refund",
    "canceled": "refund",
    **dict.fromkeys(("submitted", "queued", "running", "provider_succeeded"), "reserve"),
}


class Model(Arrivals):
    """The whole: tasks, edges, media and credits."""

    # Media

    def is_wanted(self, attempt: Attempt) -> bool:
        return attempt.is_current and attempt.task.status in (
            "provider_succeeded",
            "processing_media",
        )

    def open_media(self, attempt: Attempt) -> str:
        if not attempt.is_current or attempt.task.status != "provider_succeeded":
            return "ignored"
        known = attempt.operations.get("backhaul")
        if known is None:
            self._operation(attempt, "backhaul")
            return "opened"
        if known.status not in ("done", "failed"):
            return "ignored"
        # The provider corrected its result: it is fetched again, and nothing of the first goes on.
        for later in attempt.operations.values():
            if later.status in ("pending", "running"):
                later.status, later.lease = "failed", None
        self._again(known)
        return "opened"

    def _operation(self, attempt: Attempt, kind: str) -> None:
        attempt.operations[kind] = Operation(attempt, kind, Window.at(self.now))

    def _again(self, operation: Operation) -> None:
        operation.status, operation.progress, operation.tries = "pending", 0, 0
        operation.due = Window.at(self.now)

    def claim_media(self) -> list[Operation]:
        """Return the operations that are handed out; what nobody wants any more is given up."""
        handed = []
        for attempt in self.attempts:
            for operation in attempt.operations.values():
                if operation.status not in ("pending", "running"):
                    continue
                held = operation.lease is not None and operation.lease >= self.now
                if held or not is_due(operation.due, self.now):
                    continue
                if self.is_wanted(attempt) and operation.tries >= MEDIA_TRIES:
                    continue
                if self.is_wanted(attempt):
                    operation.status = "running"
                    operation.tries += 1
                    operation.token += 1
                    operation.lease = self.now + seconds(MEDIA_LEASE)
                    handed.append(operation)
                else:
                    operation.status, operation.lease = "failed", None
        return handed

    def give_up_media(self) -> int:
        """End the operation whose last worker is gone for longest; answer whether there is one."""
        gone = [
            (operation.lease, operation)
            for attempt in self.attempts
            for operation in attempt.operations.values()
            if operation.status == "running"
            and operation.tries >= MEDIA_TRIES
            and operation.lease is not None
            and operation.lease < self.now
        ]
        if not gone:
            return 0
        _, operation = min(gone, key=lambda entry: entry[0])
        operation.status, operation.lease = "failed", None
        if self.is_wanted(operation.attempt):
            operation.attempt.task.error = "media_failed"
            self.emit(operation.attempt.task, "failed", "media", operation.attempt)
        return 1

    def report_media(
        self,
        operation: Operation,
        token: int,
        *,
        progress: int | None = None,
        done: bool = False,
        asset: str | None = None,
        failed: bool = False,
        retry: bool = True,
    ) -> str:
        attempt, task = operation.attempt, operation.attempt.task
        if done and operation.kind == "publish" and asset is None:
            raise Refused("VC702")
        if operation.token != token or operation.status != "running":
            return "stale_lease"
        if not self.is_wanted(attempt):
            operation.status, operation.lease = "failed", None
            return "after_terminal"
        if failed:
            operation.lease = None
            wait = min(300.0, 2.0**operation.tries)
            operation.due = Window.after(self.now, wait, wait)
            if retry and operation.tries < MEDIA_TRIES:
                operation.status = "pending"
                return "applied"
            operation.status = "failed"
            task.error = "media_failed"
            self.emit(task, "failed", "media", attempt)
            return "applied"
        operation.progress = max(operation.progress, 100 if done else _bounded(progress))
        operation.lease = None if done else self.now + seconds(MEDIA_LEASE)
        if done:
            operation.status = "done"
        before = len(task.events)
        self._show(task, operation)
        if done:
            self._go_on(task, operation, asset)
        return "applied" if done or len(task.events) > before else "coalesced"

    def _show(self, task: Task, operation: Operation) -> None:
        stage = STAGES[operation.kind]
        if task.stage != stage:
            kind = "task.status.changed"
        else:
            assert task.progress_at is not None
            rises = operation.progress >= (task.progress or 0) + task.project.step
            if not rises or self.now < task.progress_at + seconds(task.project.pause):
                return
            kind = "task.progress.changed"
        task.status, task.stage = "processing_media", stage
        task.progress, task.progress_at = operation.progress, self.now
        self._event(task, kind, "media", operation.attempt)

    def _go_on(self, task: Task, operation: Operation, asset: str | None) -> None:
        place = OPERATIONS.index(operation.kind) + 1
        if place < len(OPERATIONS):
            following = operation.attempt.operations.get(OPERATIONS[place])
            if following is None:
                self._operation(operation.attempt, OPERATIONS[place])
            elif following.status in ("done", "failed"):
                self._again(following)
            return
        task.asset = asset
        task.progress = 100
        self.emit(task, "ready", "media", operation.attempt)
        for output in operation.attempt.outputs:
            operation.attempt.outputs[output] = False

    # Credits

    def book(self, attempt: Attempt, status: str) -> str:
        entry = ENTRIES.get(status)
        if entry is None:
            return "ignored"
        answer = self._book(attempt, entry)
        # What another attempt has replaced is not paid for, however it ends.
        for other in attempt.task.attempts:
            if not other.is_current and set(other.credits) == {"reserve"}:
                other.credits["refund"] = other.credits["reserve"]
        return answer

    def _book(self, attempt: Attempt, entry: str) -> str:
        credits = attempt.credits
        opposite = {"settle": "refund", "refund": "settle"}.get(entry)
        if opposite in credits:
            if entry == "settle":
                self.open_case("billing", attempt)
            return "refused"
        missing = [kind for kind in ("reserve", entry) if kind not in credits]
        for kind in missing:
            credits[kind] = credits.get("reserve", attempt.task.provider.price)
        return entry if missing else "duplicate"


def _bounded(progress: int | None) -> int:
    return max(0, min(100, progress or 0))
