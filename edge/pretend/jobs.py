"""
The provider's jobs, in no particular provider's words, and the book that keeps them.

A `State` never changes once made: a callback that is delayed, or a poll that is stale, is the
state of an earlier moment put into words late. A dialect finds the words.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from edge.pretend.faults import POLL_FAULTS, Fault
from edge.pretend.plan import Plan

DELIVERIES_KEPT = 100


class Phase(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    ABORTED = "aborted"

    @property
    def is_end(self) -> bool:
        """Answer whether a job never leaves this phase."""
        return self not in (Phase.QUEUED, Phase.RUNNING)


class Moment(StrEnum):
    """What a caller may want to be called back for."""

    START = "start"
    LOGS = "logs"
    OUTPUT = "output"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class State:
    """A job as it was at one moment. `odd_word` stands in for the word the phase should have."""

    phase: Phase
    progress: int = 0
    has_output: bool = False
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    odd_word: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Where callbacks go and which ones are wanted."""

    url: str | None = None
    moments: frozenset[Moment] = frozenset()


@dataclass(frozen=True, slots=True)
class Delivery:
    """
    One callback as it was sent, and what came back: an HTTP status, or the error's name.

    `retried` says whether it is sent again until somebody takes it, `accepted` whether the answer
    is one that this provider takes for success.
    """

    callback_id: str
    moment: str
    claims: str
    retried: bool
    fault: str | None
    answer: int | None
    error: str | None = None
    accepted: bool = False


@dataclass(slots=True, eq=False)
class Job:
    """
    One submission and everything that happened to it.

    `echo` is what the caller wanted to hear again with it; a job that is `erased` is not found.
    """

    id: str
    submission: int
    plan: Plan
    model: str
    version: str
    input: dict[str, Any]
    target: Target
    base_url: str
    created_at: datetime
    born: float
    state: State = field(default_factory=lambda: State(Phase.QUEUED))
    deadline: datetime | None = None
    lifetime_s: float | None = None
    echo: str | None = None
    erased: bool = False
    ended: float | None = None
    polls: int = 0
    cancels: int = 0
    downloads: int = 0
    deliveries: deque[Delivery] = field(default_factory=lambda: deque(maxlen=DELIVERIES_KEPT))
    poll_faults: deque[Fault] = field(default_factory=deque)
    result_faults: deque[Fault] = field(default_factory=deque)
    file_faults: deque[Fault] = field(default_factory=deque)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    polled_through: asyncio.Event = field(default_factory=asyncio.Event)
    odd_word_shown: asyncio.Event = field(default_factory=asyncio.Event)
    superseded: asyncio.Event = field(default_factory=asyncio.Event)
    first_delivered: asyncio.Event = field(default_factory=asyncio.Event)
    all_delivered: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Lay out the faults that happen one after another."""
        for fault in POLL_FAULTS:
            if self.plan.has(fault):
                self.poll_faults.extend([fault] * self.plan.times)
        if not self.poll_faults:
            self.polled_through.set()
        if self.plan.has(Fault.RESULT_ERROR):
            self.result_faults.extend([Fault.RESULT_ERROR] * self.plan.times)
        for fault in (Fault.FILE_ERROR, Fault.FILE_TRUNCATED):
            if self.plan.has(fault):
                self.file_faults.extend([fault] * self.plan.times)

    @property
    def file_url(self) -> str:
        """Return where the output can be fetched."""
        return f"{self.base_url}/files/{self.id}.mp4"

    @property
    def file(self) -> bytes:
        """Return the output: bytes that follow from the job's id, and look like an MP4."""
        return video(self.id, self.plan.file_bytes)


class Full(Exception):
    """Every job that the book has room for is still running."""


class Book:
    """The jobs that the provider remembers: at most `limit`; the oldest finished goes first."""

    def __init__(self, limit: int = 10_000) -> None:
        self.limit = limit
        self.made = 0
        self.submissions = 0
        self._submissions_of: OrderedDict[str, int] = OrderedDict()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._by_key: OrderedDict[str, list[Job]] = OrderedDict()

    def note_submission(self, key: str | None) -> int:
        """Count a submission and return which one of its key it is, the first being 1."""
        self.submissions += 1
        if key is None:
            return 1
        number = self._submissions_of.pop(key, 0) + 1
        self._submissions_of[key] = number
        if len(self._submissions_of) > self.limit:
            self._submissions_of.popitem(last=False)
        return number

    def submissions_of(self, key: str) -> int:
        """Return how often this key was submitted, refused submissions included."""
        return self._submissions_of.get(key, 0)

    def add(self, job: Job) -> None:
        """Remember a job; earlier ones with its key learn that they are superseded."""
        while len(self._jobs) >= self.limit:
            self._forget_one()
        self._jobs[job.id] = job
        self.made += 1
        if job.plan.key is not None:
            siblings = self._by_key.setdefault(job.plan.key, [])
            for earlier in siblings:
                earlier.superseded.set()
            siblings.append(job)

    def get(self, job_id: str) -> Job | None:
        """Return a job, or None when there is none or it was forgotten."""
        return self._jobs.get(job_id)

    def with_key(self, key: str) -> list[Job]:
        """Return the remembered submissions of a key, oldest first."""
        return [job for job in self._by_key.get(key, ()) if job.id in self._jobs]

    def newest_first(self) -> Iterator[Job]:
        """Yield every remembered job, the newest first."""
        return reversed(self._jobs.values())

    def another(self, job: Job) -> Job | None:
        """Return the oldest job that was asked about already, other than `job`, or None."""
        return next(
            (other for other in self._jobs.values() if other is not job and other.polls), None
        )

    def _forget_one(self) -> None:
        # Running jobs are few and young; the scan ends at the first finished one.
        finished = next((job for job in self._jobs.values() if job.over.is_set()), None)
        if finished is None:
            raise Full
        del self._jobs[finished.id]
        key = finished.plan.key
        if key is not None and not self.with_key(key):
            self._by_key.pop(key, None)


def video(job_id: str, size: int) -> bytes:
    """Return `size` bytes that depend on nothing but the id, with an MP4's first box."""
    head = b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"
    body = bytearray(head)
    block = hashlib.sha256(job_id.encode()).digest()
    while len(body) < size:
        body += block
        block = hashlib.sha256(block).digest()
    return bytes(body[:size])
