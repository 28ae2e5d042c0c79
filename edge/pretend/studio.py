"""
The provider behind every dialect: it takes submissions, plays jobs, answers polls and cancels.

A dialect turns HTTP into these calls and their answers into HTTP; it decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from edge import logs
from edge.pretend import plan as plans
from edge.pretend.callbacks import Post, Wording, new_client
from edge.pretend.clock import Clock
from edge.pretend.faults import Fault, Tally
from edge.pretend.jobs import Book, Full, Job, Phase, State, Target
from edge.pretend.player import play

logger = logs.get(__name__)

EARLY_PATIENCE_S = 10.0
CANCEL_PATIENCE_S = 0.25
RETRY_AFTER_S = 1


@dataclass(frozen=True, slots=True)
class Submission:
    """What a caller asked for."""

    model: str
    version: str
    input: dict[str, Any]
    target: Target
    base_url: str
    lifetime_s: float | None = None
    echo: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a submission made no job."""

    status: int
    title: str
    detail: str
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class PollAnswer:
    """
    What a poll is answered: a state, or an error status, or (`raw`) bytes that are no answer.

    A body that is `cut` breaks off; one that takes `drip_s` comes in pieces.
    """

    state: State
    status: int = 200
    detail: str = ""
    retry_after: int | None = None
    raw: bytes | None = None
    media_type: str = "application/json"
    cut: bool = False
    drip_s: float = 0.0


class HangUp(Exception):
    """Break the connection instead of answering."""


class Studio:
    """All jobs of one provider process."""

    def __init__(self, wording: Wording, clock: Clock, post: Post) -> None:
        self.clock = clock
        self.book: Book = post.book
        self.tally: Tally = post.tally
        self.wording = wording
        self._post = post
        self._playing: set[asyncio.Task[None]] = set()

    async def submit(self, submission: Submission) -> Job | Refusal:
        """
        Make a job and set it going; the answer may be late, as its plan says.

        Raises `HangUp` when the caller is not to learn of the job.
        """
        try:
            pretend = plans.find(submission.input)
            number = self.book.note_submission(plans.read_key(pretend))
            plan = plans.read(pretend, number)
        except plans.BadPlan as bad:
            return Refusal(422, "Input validation failed", str(bad))
        if plan.has(Fault.REFUSED):
            self.tally.add(Fault.REFUSED)
            return Refusal(422, "Input validation failed", "input: this model does not take it")
        job = self._new_job(submission, plan, number)
        try:
            self.book.add(job)
        except Full:
            return Refusal(429, "Too many requests", "Too many predictions are running", 5)
        self._start(job)
        await self._answer_late(job)
        return job

    def result(self, job: Job) -> PollAnswer:
        """Answer who asks for the result of a job that is over."""
        if not job.result_faults:
            return PollAnswer(job.state)
        self.tally.add(job.result_faults.popleft())
        return PollAnswer(job.state, 504, "The upstream server did not answer in time.")

    async def poll(self, job: Job, *, tells_result: bool = True) -> PollAnswer:
        """
        Answer a poll, wrongly while the plan has faults left for it.

        Where the result has an address of its own, a poll does not tell it.
        """
        job.polls += 1
        fault = self._take_poll_fault(job)
        if fault is None:
            if tells_result and job.finished.is_set() and job.result_faults:
                return self.result(job)
            return self._true_answer(job)
        if fault is Fault.POLL_SLOW:
            await asyncio.sleep(job.plan.slow_s)
        self.tally.add(fault)
        if not job.poll_faults:
            job.polled_through.set()
        match fault:
            case Fault.POLL_MISSING:
                return PollAnswer(job.state, 404, "The requested resource could not be found.")
            case Fault.POLL_THROTTLED:
                return PollAnswer(job.state, 429, "Request was throttled.", RETRY_AFTER_S)
            case Fault.POLL_ERROR:
                return PollAnswer(job.state, 500 if job.polls % 2 else 503, "Try again later.")
            case Fault.POLL_MALFORMED:
                raw, media_type = NO_ANSWERS[job.polls % len(NO_ANSWERS)]
                return PollAnswer(job.state, raw=raw, media_type=media_type)
            case Fault.POLL_TRUNCATED:
                return PollAnswer(job.state, cut=True)
            case Fault.POLL_DRIP:
                return PollAnswer(job.state, drip_s=job.plan.slow_s)
            case Fault.POLL_STALE:
                return PollAnswer(State(Phase.QUEUED))
            case _:
                return self._true_answer(job)

    async def cancel(self, job: Job) -> None:
        """Ask a job to stop, and give it a moment to do so before the caller is answered."""
        job.cancels += 1
        if job.finished.is_set():
            return
        ignored = job.plan.has(Fault.CANCEL_IGNORED)
        if ignored and not job.cancel.is_set():
            self.tally.add(Fault.CANCEL_IGNORED)
        job.cancel.set()
        if not ignored:
            await self.wait_really(job.finished, CANCEL_PATIENCE_S)

    def ended_longer_ago(self, job: Job, seconds: float) -> bool:
        """Answer whether a job has been over for longer than this, on the provider's clock."""
        return job.ended is not None and self.clock.elapsed() - job.ended > seconds

    async def wait_really(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for `event` for so many real seconds: a caller's patience does not speed up."""
        return await self.clock.wait(event, seconds * self.clock.speed)

    async def close(self) -> None:
        """Stop every job where it is."""
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)

    def _new_job(self, submission: Submission, plan: plans.Plan, number: int) -> Job:
        created_at = self.clock.now()
        lifetime = submission.lifetime_s
        return Job(
            id=self.wording.new_id(),
            submission=number,
            plan=plan,
            model=submission.model,
            version=submission.version,
            input=submission.input,
            target=submission.target,
            base_url=submission.base_url,
            created_at=created_at,
            born=self.clock.elapsed(),
            lifetime_s=lifetime,
            echo=submission.echo,
            deadline=None
            if lifetime is None
            else created_at + timedelta(seconds=lifetime / self.clock.speed),
        )

    def _start(self, job: Job) -> None:
        task = asyncio.create_task(play(job, self._post), name=f"job {job.id}")
        self._playing.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._playing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("job broke", exc_info=error)

    async def _answer_late(self, job: Job) -> None:
        for fault, event in (
            (Fault.EARLY, job.first_delivered),
            (Fault.EARLY_END, job.all_delivered),
        ):
            if job.plan.has(fault):
                await self.wait_really(event, EARLY_PATIENCE_S)
                if any(delivery.accepted for delivery in job.deliveries):
                    self.tally.add(fault)
        if job.plan.has(Fault.REPLY_LOST):
            self.tally.add(Fault.REPLY_LOST)
            raise HangUp

    def _take_poll_fault(self, job: Job) -> Fault | None:
        if not job.poll_faults:
            return None
        # The state before the start is only stale once the job has started.
        if job.poll_faults[0] is Fault.POLL_STALE and job.state.phase is not Phase.RUNNING:
            return None
        return job.poll_faults.popleft()

    def _true_answer(self, job: Job) -> PollAnswer:
        if job.state.odd_word is not None:
            self.tally.add(Fault.UNKNOWN_WORD)
            job.odd_word_shown.set()
        return PollAnswer(job.state)


NO_ANSWERS: tuple[tuple[bytes, str], ...] = (
    (b'{"id": "x", "status": "succ', "application/json"),
    (b"<html><body>Bad gateway</body></html>", "text/html"),
    (b"", "application/json"),
    (b"[]", "application/json"),
)


@asynccontextmanager
async def open_studio(wording: Wording, clock: Clock, max_jobs: int) -> AsyncIterator[Studio]:
    """Run a studio inside the block; its jobs end with it."""
    async with new_client() as client:
        studio = Studio(wording, clock, Post(client, wording, clock, Tally(), Book(max_jobs)))
        try:
            yield studio
        finally:
            await studio.close()
