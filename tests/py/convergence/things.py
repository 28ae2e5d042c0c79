"""
What the model of convergence speaks of: providers, tasks, attempts, cases, operations, credits.

Times are either known or a `Window`: the database adds jitter, so the model says between which
moments a time must lie, and takes over the one that it finds there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

ENDS = frozenset({"succeeded", "failed", "canceled"})
WAY = ("created", "submitting", "submit_unknown", "submitted", "queued", "running")
FINAL = frozenset({"ready", "failed", "canceled"})
BEHIND_PROVIDER = FINAL | {"provider_succeeded", "processing_media"}
STAGES = {
    "backhaul": "backhauling",
    "verify": "verifying",
    "transcode": "transcoding",
    "publish": "publishing",
}
OPERATIONS = tuple(STAGES)
LIFE = 900.0  # seconds that an attempt may take


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


class Window(NamedTuple):
    """Between which two moments a time lies."""

    low: datetime
    high: datetime

    @classmethod
    def at(cls, when: datetime) -> Window:
        return cls(when, when)

    @classmethod
    def after(cls, when: datetime, low: float, high: float) -> Window:
        """Return the window from `low` to `high` seconds after `when`, give or take a fifth."""
        return cls(when + seconds(low * 0.8), when + seconds(high * 1.2))

    def latest(self, other: Window) -> Window:
        return Window(max(self.low, other.low), max(self.high, other.high))

    def earliest(self, other: Window) -> Window:
        return Window(min(self.low, other.low), min(self.high, other.high))


@dataclass(eq=False)
class Provider:
    """A provider's profile, as far as its behaviour depends on it."""

    name: str
    corrects: bool
    cancels: bool
    price: int = 1


class Seen(NamedTuple):
    """What a callback, poll or reconciliation says of an attempt; no status: an unknown word."""

    source: str
    status: str | None
    progress: int | None = None
    sequence: int | None = None
    revision: int | None = None
    job: str | None = None
    error: str | None = None
    outputs: int = 0


class Event(NamedTuple):
    """One committed change of a task, as readers get it."""

    kind: str
    status: str
    stage: str
    progress: int | None
    source: str
    attempt: int


class Stored(NamedTuple):
    """One row of the ledger of observations."""

    attempt: int
    source: str
    verdict: str
    status: str | None


@dataclass(eq=False)
class Operation:
    """One operation of the media plane."""

    attempt: Attempt
    kind: str
    due: Window
    status: str = "pending"
    progress: int = 0
    tries: int = 0
    lease: datetime | None = None
    token: int = 0


@dataclass(eq=False)
class Case:
    """Something that is for a person, or a later observation, to decide."""

    kind: str
    attempt: Attempt | None
    opened: datetime
    subject: object = None  # the attempt, or the delivery that fits none
    facts: int = 1
    resolution: str | None = None


@dataclass(eq=False)
class Delivery:
    """One row of the inbox: what it says, and the clues that tell whose it is."""

    event: str
    provider: Provider
    seen: Seen | None  # none: a hint
    by_token: Attempt | None
    by_client: Attempt | None
    job: str | None
    state: str = "pending"
    tries: int = 0
    due: Window | None = None
    verdict: str | None = None


@dataclass(eq=False)
class Attempt:
    """One submission of a task to its provider."""

    task: Task
    number: int
    id: UUID
    created: datetime
    deadline: datetime
    key: str | None = None

    status: str = "created"
    known: str = "created"
    job: str | None = None
    sequence: int | None = None
    revision: int | None = None
    progress: int | None = None
    error: str | None = None
    seen_by: frozenset[str] = frozenset()

    submit: str = "due"
    submit_token: int = 0
    submit_tries: int = 0
    submit_lease: datetime | None = None
    submit_due: Window | None = None
    submitted: datetime | None = None
    token: str | None = None
    in_doubt: bool = False  # the provider may have it
    given_up: bool = False  # an operator ended it; the provider did not

    poll: Window | None = None
    poll_lease: datetime | None = None
    poll_token: int = 0
    polls: int = 0
    failures: int = 0
    polled: datetime | None = None
    hinted: datetime | None = None

    cancel: str | None = None
    cancel_due: Window | None = None
    cancel_lease: datetime | None = None
    cancel_token: int = 0
    cancel_tries: int = 0

    outputs: dict[int, bool] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    credits: dict[str, int] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.status in ENDS

    @property
    def is_current(self) -> bool:
        return self.task.current is self


@dataclass(eq=False)
class Task:
    """What a user asked for."""

    id: UUID
    project: Project
    provider: Provider
    prompt: str
    external: bool = False  # the application submits it
    status: str = "created"
    stage: str = "created"
    progress: int | None = None
    progress_at: datetime | None = None
    cancel_asked: bool = False
    error: str | None = None
    asset: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    current: Attempt = field(init=False)
    events: list[Event] = field(default_factory=list)
    ledger: list[Stored] = field(default_factory=list)
    audit: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Project:
    """A project and its rules."""

    id: UUID
    policy: str = "keep"
    step: int = 5
    pause: float = 1.0
    keys: dict[str, Task] = field(default_factory=dict)
