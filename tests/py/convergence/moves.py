"""What users, operators and time do in random histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.py.convergence.history import History
from tests.py.convergence.payloads import job_of
from tests.py.convergence.things import FINAL, LIFE, Attempt, Operation, Seen, Task, Window
from tests.py.support.sessions import Connection

Thing = TypeVar("Thing")

MOST_TASKS = 3
MOST_ATTEMPTS = 4
STATUSES = ("queued", "queued", *["running"] * 4, *["succeeded"] * 2, "failed", "canceled", None)
# Odd microseconds: sums of these never meet a lease's end exactly.
PAUSES = (0.300007, 1.100013, 6.300029, 31.700053, 62.900071, 125.300093, 1000.700113)

pick = st.integers(0, 20)
rarely = st.sampled_from([False, False, False, False, True])
statuses = st.sampled_from(STATUSES)
percents = st.none() | st.sampled_from([0, 3, 5, 6, 10, 50, 99, 100])
counts = st.none() | st.integers(1, 4)


class Moves(RuleBasedStateMachine):
    """Everything that the world may do to some tasks, in any order and any number of times."""

    session: ClassVar[Connection]
    visited: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.history = History(self.session)
        self.model = self.history.model
        self.submissions: list[tuple[Attempt, int]] = []
        self.polls: list[tuple[Attempt, int]] = []
        self.cancels: list[tuple[Attempt, int]] = []
        self.held: list[tuple[Operation, int]] = []
        self.delivered: list[tuple[Attempt, Seen, str]] = []

    def teardown(self) -> None:
        try:
            if self.model.tasks and not self.history.comparison.differs:
                self.settle_accounts()
        finally:
            self.history.close()
            self.visited.update(self.model.visited)

    def settle_accounts(self) -> None:
        """Whatever happened, once billing has read everything, each attempt is paid for or not."""
        for task in self.model.tasks:
            for version in range(1, len(task.events) + 1):
                self.history.tell_billing(task, version)
            for attempt in task.attempts:
                booked = set(attempt.credits)
                assert not {"settle", "refund"} <= booked
                if booked:
                    assert "reserve" in booked
                    assert len(set(attempt.credits.values())) == 1
                over = task.status in ("ready", "failed", "canceled")
                if not attempt.is_current or over:
                    assert booked != {"reserve"}, "credits stay reserved for ever"

    # Commands

    @initialize(project=st.integers(0, 1), provider=st.sampled_from(["lumen", "zephyr"]))
    def begin(self, project: int, provider: str) -> None:
        self._create(project, provider, None)

    def _create(
        self, project: int, provider: str, key: str | None, *, external: bool = False
    ) -> None:
        prompt = f"task {len(self.model.tasks)}"
        history = self.history
        history.create(
            history.projects[project], history.providers[provider], prompt, key, external=external
        )

    @precondition(lambda self: len(self.model.tasks) < MOST_TASKS)
    @rule(
        project=st.integers(0, 1),
        provider=st.sampled_from(["lumen", "zephyr"]),
        key=st.sampled_from([None, "one", "two"]),
        external=rarely,
    )
    def create(self, project: int, provider: str, key: str | None, external: bool) -> None:
        self._create(project, provider, key, external=external)

    @precondition(lambda self: any(p.keys for p in self.history.projects))
    @rule(at=pick)
    def create_again(self, at: int) -> None:
        known = [(key, task) for p in self.history.projects for key, task in p.keys.items()]
        key, task = one(known, at)
        self.history.create(task.project, task.provider, task.prompt, key, external=task.external)

    @rule(at=pick, in_vain=rarely)
    def cancel(self, at: int, in_vain: bool) -> None:
        hopeful = [t for t in self.model.tasks if t.status not in FINAL and not t.cancel_asked]
        if in_vain or hopeful:
            self.history.cancel(one(self.model.tasks if in_vain else hopeful, at))

    def _may_start(self, *, hopeful: bool) -> list[Task]:
        return [
            task
            for task in self.model.tasks
            if len(task.attempts) < MOST_ATTEMPTS
            and (not hopeful or self.model.start_attempt(task, None) == "applied")
        ]

    @precondition(lambda self: self._may_start(hopeful=False))
    @rule(at=pick, key=st.sampled_from([None, "again", "once more"]), in_vain=rarely)
    def start(self, at: int, key: str | None, in_vain: bool) -> None:
        tasks = self._may_start(hopeful=not in_vain)
        if tasks:
            self.history.start(one(tasks, at), key)

    @precondition(lambda self: any(len(task.attempts) > 1 for task in self.model.tasks))
    @rule(at=pick, in_vain=rarely)
    def adopt(self, at: int, in_vain: bool) -> None:
        several = [a for a in self.model.attempts if len(a.task.attempts) > 1]
        hopeful = [a for a in several if a.status == "succeeded" and not a.is_current]
        if in_vain or hopeful:
            self.history.adopt(one(several if in_vain else hopeful, at))

    @rule(at=pick, wrong=rarely, in_vain=rarely)
    def record(self, at: int, wrong: bool, in_vain: bool) -> None:
        lost = [
            task
            for task in self.model.tasks
            if task.current.submit in ("unknown", "application")
            or (task.current.job is None and (task.current.over or task.current.given_up))
        ]
        if not lost and not in_vain:
            return
        task = one(self.model.tasks if in_vain else lost, at)
        jobs = [attempt.job for attempt in self.model.attempts if attempt.job]
        job = one(jobs, at) if wrong and jobs else job_of(task.current)
        self.history.record(task, job)

    @precondition(lambda self: self._resolvable())
    @rule(at=pick, resolution=st.sampled_from(["kept", "failed"]))
    def resolve(self, at: int, resolution: str) -> None:
        self.history.resolve(one(self._resolvable(), at), resolution)

    def _resolvable(self) -> list[Any]:
        return [c for c in self.model.cases if c.subject is c.attempt and c.resolution is None]

    def _any(self, submit: Sequence[str] = (), cancel: Sequence[str] = ()) -> bool:
        return any(a.submit in submit or a.cancel in cancel for a in self.model.attempts)

    def _operations(self) -> list[Operation]:
        return [o for a in self.model.attempts for o in a.operations.values()]

    # Time

    @rule(pause=st.sampled_from(PAUSES))
    def advance(self, pause: float) -> None:
        self.history.advance(pause)
        if pause > LIFE:
            self.history.watch()

    def _to_come(self) -> list[Window]:
        due = [w for a in self.model.attempts for w in (a.poll, a.submit_due, a.cancel_due)]
        due += [o.due for o in self._operations()] + [d.due for d in self.model.inbox]
        return [window for window in due if window and window.high >= self.model.now]

    @precondition(lambda self: self._to_come())
    @rule(at=pick)
    def advance_to_something_due(self, at: int) -> None:
        self.history.advance_to(one(self._to_come(), at))


def one(things: Sequence[Thing], at: int) -> Thing:
    return things[at % len(things)]


def take(things: list[Thing], at: int, *, keep: bool) -> Thing:
    """Return one of the things; kept, it may come again, as a late or repeated answer."""
    at %= len(things)
    return things[at] if keep else things.pop(at)
