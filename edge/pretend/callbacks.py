"""
Sending callbacks: signed, retried where a real provider retries, and wrong where the plan says so.

Each job has an `Outlet`. The callbacks of a job leave it one after another in the order of the
job's life, unless a fault says otherwise; jobs do not wait for each other. Only a callback that
tells of the end is retried, as often and as late as its provider does.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

import httpx

from edge import logs
from edge.pretend.clock import Clock
from edge.pretend.faults import Fault, Tally
from edge.pretend.jobs import Book, Delivery, Job, Moment, Phase, State

logger = logs.get(__name__)

TIMEOUT = httpx.Timeout(5.0)
LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=32)
THROTTLE_S = 0.5
QUEUE_LIMIT = 256
PATIENCE_S = 600.0

SKEW = timedelta(minutes=4)
OUTDATED_BY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Sending:
    """What is signed: one delivery of a callback. A forged one is signed with a wrong key."""

    id: str
    job: Job
    url: str
    at: datetime
    body: bytes
    forged: bool = False


class Wording(Protocol):
    """How a provider names its jobs, and words and signs a callback."""

    @property
    def retry_pauses(self) -> tuple[float, ...]:
        """Return the pauses after which a callback is sent again that nobody took."""

    def new_id(self) -> str:
        """Return an id for a job."""

    def callback_body(self, job: Job, state: State) -> bytes | None:
        """Return the body that tells of this state, or None where nobody is told of it."""

    def callback_headers(self, sending: Sending) -> dict[str, str]:
        """Return the headers that sign a callback."""

    def accepts(self, status: int) -> bool:
        """Answer whether this answer to a callback is a success."""


@dataclass(frozen=True, slots=True)
class Callback:
    """One callback to send. `offset` shifts its time stamp, `retried` marks a terminal one."""

    id: str
    moment: Moment
    claims: Phase
    body: bytes
    due: float
    retried: bool = False
    fault: Fault | None = None
    offset: timedelta = timedelta(0)
    odd: bool = False


@dataclass(frozen=True, slots=True)
class Post:
    """What every outlet needs: the way out, the words, the clock and the tally."""

    client: httpx.AsyncClient
    wording: Wording
    clock: Clock
    tally: Tally
    book: Book


def new_client() -> httpx.AsyncClient:
    """Return the one client that sends every callback; it follows no redirect."""
    return httpx.AsyncClient(timeout=TIMEOUT, limits=LIMITS, follow_redirects=False)


class Outlet:
    """The callbacks of one job on their way out."""

    def __init__(self, job: Job, post: Post) -> None:
        self._job = job
        self._post = post
        self._queue: asyncio.Queue[Callback | None] = asyncio.Queue()
        self._last: dict[Moment, float] = {}

    def emit(self, moment: Moment, state: State) -> None:
        """Put a callback about `state` on its way, if anybody wants this moment. Never waits."""
        job, plan, clock = self._job, self._job.plan, self._post.clock
        if job.target.url is None or moment not in job.target.moments:
            return
        now = clock.elapsed()
        if moment in (Moment.LOGS, Moment.OUTPUT) and state.odd_word is None:
            if now - self._last.get(moment, -THROTTLE_S) < THROTTLE_S:
                return
            self._last[moment] = now
        if plan.has(Fault.DROP):
            self._post.tally.add(Fault.DROP)
            return
        due = now + (plan.delay_s if plan.has(Fault.DELAY) else 0)
        callback = self._callback(moment, state, due=due, retried=state.phase.is_end)
        if callback is not None:
            self._put(callback)

    def mislead(self) -> None:
        """Put the false callbacks of the plan on their way; the job is running."""
        plan = self._job.plan
        if self._job.target.url is None:
            return
        for fault in (Fault.GARBLED, Fault.FORGED, Fault.OUTDATED, Fault.UNSIGNED, Fault.LIE):
            if plan.has(fault):
                false = self._false(fault)
                if false is not None:
                    self._put(false)

    def close(self) -> None:
        """Say that no more will be emitted."""
        self._queue.put_nowait(None)

    async def run(self) -> None:
        """Send what is emitted until closed, then what the plan keeps for after the end."""
        held: list[Callback] = []
        while (callback := await self._queue.get()) is not None:
            if self._job.plan.has(Fault.REORDER) and callback.fault is None:
                held.append(callback)
            else:
                await self._leave(callback)
        for position, callback in enumerate(reversed(held)):
            if position:
                self._post.tally.add(Fault.REORDER)
            await self._leave(callback)
        await self._epilogue()
        self._job.first_delivered.set()
        self._job.all_delivered.set()

    async def _epilogue(self) -> None:
        job, plan, state = self._job, self._job.plan, self._job.state
        if job.target.url is None:
            return
        if plan.has(Fault.LATE):
            early = State(Phase.RUNNING, progress=10, started_at=state.started_at)
            await self._send_false(Fault.LATE, Moment.LOGS, early)
        if plan.has(Fault.CONTRADICT):
            await self._send_false(Fault.CONTRADICT, Moment.COMPLETED, opposite(job))
        if plan.has(Fault.OLD_ATTEMPT) and await self._post.clock.wait(job.superseded, PATIENCE_S):
            await self._send_false(Fault.OLD_ATTEMPT, Moment.COMPLETED, success(job))

    async def _send_false(self, fault: Fault, moment: Moment, state: State) -> None:
        callback = self._callback(moment, state, fault=fault, retried=state.phase.is_end)
        if callback is not None and await self._deliver(callback):
            self._post.tally.add(fault)

    def _false(self, fault: Fault) -> Callback | None:
        job = self._job
        claim = opposite(job)
        if fault is Fault.LIE:
            # Another job that exists: an id that nobody knows could honestly be this job's own.
            other = self._post.book.another(job)
            if other is None:
                return None
            lie = self._callback(Moment.COMPLETED, claim, fault=fault)
            body = self._post.wording.callback_body(other, claim)
            return None if lie is None or body is None else replace(lie, body=body)
        callback = self._callback(Moment.COMPLETED, claim, fault=fault)
        if callback is None:
            return None
        if fault is Fault.GARBLED:
            return replace(callback, body=callback.body[: len(callback.body) // 2])
        return replace(callback, offset=-OUTDATED_BY) if fault is Fault.OUTDATED else callback

    def _callback(
        self,
        moment: Moment,
        state: State,
        *,
        due: float = 0.0,
        retried: bool = False,
        fault: Fault | None = None,
    ) -> Callback | None:
        body = self._post.wording.callback_body(self._job, state)
        if body is None:
            return None
        return Callback(
            id=f"msg_{secrets.token_hex(12)}",
            moment=moment,
            claims=state.phase,
            body=body,
            due=due,
            retried=retried,
            fault=fault,
            offset=SKEW if self._job.plan.has(Fault.SKEWED) else timedelta(0),
            odd=state.odd_word is not None,
        )

    def _put(self, callback: Callback) -> None:
        # Only intermediate callbacks can be this many, and those may be lost anyway.
        if self._queue.qsize() >= QUEUE_LIMIT and not callback.retried:
            logger.warning("callback left out", job=self._job.id)
            return
        self._queue.put_nowait(callback)

    async def _leave(self, callback: Callback) -> None:
        plan, tally = self._job.plan, self._post.tally
        wait = callback.due - self._post.clock.elapsed()
        if wait > 0:
            await self._post.clock.sleep(wait)
        copies = 2 if plan.has(Fault.DUPLICATE) and callback.fault is None else 1
        arrived = await asyncio.gather(*(self._deliver(callback) for _ in range(copies)))
        if callback.fault is not None:
            tally.add(callback.fault)
            return
        if not any(arrived):
            return
        self._job.first_delivered.set()
        if callback.odd:
            tally.add(Fault.UNKNOWN_WORD)
            self._job.odd_word_shown.set()
        if copies == 2 and all(arrived):
            tally.add(Fault.DUPLICATE)
        for fault in (Fault.DELAY, Fault.SKEWED):
            if plan.has(fault):
                tally.add(fault)

    async def _deliver(self, callback: Callback) -> bool:
        """Send until it is accepted or the tries run out; answer whether it was accepted."""
        pauses = iter(self._post.wording.retry_pauses if callback.retried else ())
        while not await self._send(callback):
            pause = next(pauses, None)
            if pause is None:
                return False
            await self._post.clock.sleep(pause)
        return True

    async def _send(self, callback: Callback) -> bool:
        url, post = self._job.target.url, self._post
        assert url is not None
        sending = Sending(
            callback.id,
            self._job,
            url,
            post.clock.now() + callback.offset,
            callback.body,
            forged=callback.fault is Fault.FORGED,
        )
        headers = {"content-type": "application/json"}
        if callback.fault is not Fault.UNSIGNED:
            headers |= post.wording.callback_headers(sending)
        answer, error = None, None
        try:
            response = await post.client.post(url, content=callback.body, headers=headers)
            answer = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL) as failure:
            error = type(failure).__name__
        delivery = Delivery(
            callback_id=callback.id,
            moment=callback.moment,
            claims=callback.claims,
            retried=callback.retried,
            fault=callback.fault,
            answer=answer,
            error=error,
            accepted=answer is not None and post.wording.accepts(answer),
        )
        self._job.deliveries.append(delivery)
        return delivery.accepted


def opposite(job: Job) -> State:
    """Return the end that this job does not have."""
    return failure(job) if job.plan.outcome == "succeeded" else success(job)


def success(job: Job) -> State:
    """Return the job as if it had succeeded now."""
    return State(
        Phase.SUCCEEDED, 100, has_output=True, started_at=job.created_at, completed_at=Clock.now()
    )


def failure(job: Job) -> State:
    """Return the job as if it had failed now."""
    return State(
        Phase.FAILED,
        job.state.progress,
        error=job.plan.error,
        started_at=job.created_at,
        completed_at=Clock.now(),
    )
