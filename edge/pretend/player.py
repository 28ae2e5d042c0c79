"""
The life of a job: it waits, runs in steps, and ends as its plan says.

A plan's faults must have happened by the time the job ends, or nobody could count on them: the
last step waits, within a bound, until the polls that are to go wrong have been asked for, an odd
word has been seen, and a cancel that is to be ignored has come.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from edge.pretend.callbacks import Outlet, Post
from edge.pretend.clock import Clock
from edge.pretend.faults import Fault
from edge.pretend.jobs import Job, Moment, Phase

ODD_WORD = "hydrating"
FAULT_PATIENCE_S = 300.0


async def play(job: Job, post: Post) -> None:
    """Live the job's life to its end, callbacks included."""
    outlet = Outlet(job, post)
    async with asyncio.TaskGroup() as both:
        both.create_task(outlet.run())
        try:
            await _live(job, outlet, post.clock)
        finally:
            outlet.close()
    job.over.set()


async def _live(job: Job, outlet: Outlet, clock: Clock) -> None:
    plan = job.plan
    if await _canceled_within(job, clock, plan.queue_s):
        return _end(job, outlet, clock, Phase.CANCELED)
    if plan.outcome == "aborted" or _past(job, clock):
        return _end(job, outlet, clock, Phase.ABORTED)

    job.state = replace(job.state, phase=Phase.RUNNING, started_at=clock.now())
    outlet.emit(Moment.START, job.state)
    for step in range(1, plan.steps + 1):
        if await _canceled_within(job, clock, plan.run_s / plan.steps) or _past(job, clock):
            return _end(job, outlet, clock, Phase.CANCELED)
        job.state = replace(job.state, progress=round(95 * step / plan.steps))
        outlet.emit(Moment.LOGS, job.state)
        if step == (plan.steps + 1) // 2:
            outlet.mislead()
            await _show_odd_word(job, outlet, clock)

    if plan.outcome == "canceled":
        await _canceled_within(job, clock, _left(job, clock))
        return _end(job, outlet, clock, Phase.CANCELED)
    await clock.wait(job.polled_through, FAULT_PATIENCE_S)
    if plan.has(Fault.CANCEL_IGNORED):
        await clock.wait(job.cancel, FAULT_PATIENCE_S)
    if plan.outcome == "failed":
        return _end(job, outlet, clock, Phase.FAILED, error=plan.error)
    job.state = replace(job.state, progress=100, has_output=True)
    outlet.emit(Moment.OUTPUT, job.state)
    return _end(job, outlet, clock, Phase.SUCCEEDED)


async def _show_odd_word(job: Job, outlet: Outlet, clock: Clock) -> None:
    if not job.plan.has(Fault.UNKNOWN_WORD):
        return
    job.state = replace(job.state, odd_word=ODD_WORD)
    outlet.emit(Moment.LOGS, job.state)
    await clock.wait(job.odd_word_shown, FAULT_PATIENCE_S)
    job.state = replace(job.state, odd_word=None)


async def _canceled_within(job: Job, clock: Clock, seconds: float) -> bool:
    if job.plan.has(Fault.CANCEL_IGNORED):
        await clock.sleep(seconds)
        return False
    return await clock.wait(job.cancel, seconds)


def _past(job: Job, clock: Clock) -> bool:
    return _left(job, clock) <= 0


def _left(job: Job, clock: Clock) -> float:
    lifetime = 1800.0 if job.lifetime_s is None else job.lifetime_s
    return max(0.0, job.born + lifetime - clock.elapsed())


def _end(job: Job, outlet: Outlet, clock: Clock, phase: Phase, error: str | None = None) -> None:
    job.state = replace(job.state, phase=phase, error=error, completed_at=clock.now())
    job.ended = clock.elapsed()
    job.finished.set()
    outlet.emit(Moment.COMPLETED, job.state)
