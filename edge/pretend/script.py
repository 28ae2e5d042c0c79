"""
The scripted run behind `aivedio up --once`: make jobs, watch them, judge them.

It is a stranger to the system that it judges. It speaks to the gateway's public HTTP API and
to the pretend provider, never to the database; and what each job must end as comes from its
scenario, which the pretend provider plays and the system has never seen.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from edge.pretend import scenarios
from edge.pretend.api import BadAnswer, Gateway, Provider, Session, open_gateway, open_provider
from edge.pretend.follow import Account, Follower, read
from edge.pretend.judge import Played, count_lost, is_over, judge_faults, judge_job
from edge.pretend.scenarios import Faults

__all__ = ["Report", "Session", "run"]

AT_ONCE = 24
# After the last callback of the last job nothing more may change; this long it must stay so.
QUIET_S = 1.5
PAUSE_S = 0.2
REREAD_S = 20.0
LATER_THAN_RUNNING = frozenset({"running", "provider_succeeded", "processing_media"})


@dataclass(slots=True)
class Report:
    """What the run saw, and everything that was not as the script says."""

    jobs: int = 0
    ready: int = 0
    failed: int = 0
    canceled: int = 0
    events: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the one line that `up --once` prints, as a dict."""
        return {
            "jobs": self.jobs,
            "ready": self.ready,
            "failed": self.failed,
            "canceled": self.canceled,
            "events": self.events,
            "faults": dict(sorted(self.faults.items())),
            "lost": self.lost,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
        }


async def run(
    *,
    gateway_url: str,
    session: Session,
    provider_url: str,
    jobs: int,
    faults: Faults,
    timeout_s: float = 120.0,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """
    Play `jobs` scenarios and return what came of them; `say` is told of each job's end.

    An empty `Report.failures` means success. A run that takes longer than `timeout_s` is ended,
    and its failures say which jobs are stuck and where. Raises `ValueError` when there are too
    few jobs for `faults`.
    """
    chosen = scenarios.choose(jobs, faults, secrets.token_hex(4))
    try:
        async with (
            open_gateway(gateway_url, session) as gateway,
            open_provider(provider_url) as provider,
        ):
            played = [Played(scenario) for scenario in chosen]
            return await Run(gateway, provider, played, say).play(timeout_s)
    except (BadAnswer, httpx.HTTPError) as error:
        return Report(jobs=jobs, failures=[f"the run could not begin: {error!r}"])


class Run:
    """One run: its jobs, the follower that watches them, and the judgement."""

    def __init__(
        self,
        gateway: Gateway,
        provider: Provider,
        played: list[Played],
        say: Callable[[str], None],
    ) -> None:
        self._gateway = gateway
        self._provider = provider
        self._played = played
        self._say = say
        self._follower = Follower(gateway)
        self._places = asyncio.Semaphore(AT_ONCE)

    async def play(self, timeout_s: float) -> Report:
        """Play everything within `timeout_s`, then judge."""
        before = await self._provider.faults()
        following = asyncio.create_task(self._follower.run())
        late = False
        try:
            async with asyncio.timeout(timeout_s):
                await self._follower.connected.wait()
                await asyncio.gather(*(self._play(one) for one in self._played))
                await self._settle()
        except TimeoutError:
            late = True
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
        after = await self._provider.faults()
        counts = {kind: after[kind] - before.get(kind, 0) for kind in after}
        return await self._judge(
            {k: n for k, n in counts.items() if n}, timeout_s if late else None
        )

    async def _play(self, one: Played) -> None:
        """Make one job, do to it what its scenario says, and wait for its end."""
        async with self._places:
            try:
                one.task_id = await self._gateway.create(one.scenario.pretend(), one.scenario.key)
                await self._act(one, one.task_id)
                ended = await self._follower.until(one.task_id, is_over)
                self._say(f"{one.name}: {ended['status']}")
            except (httpx.HTTPError, BadAnswer, KeyError) as error:
                one.trouble = f"{type(error).__name__}: {error}"

    async def _act(self, one: Played, task: str) -> None:
        match one.scenario.action:
            case "cancel":
                await self._follower.until(
                    task, lambda seen: seen["status"] in LATER_THAN_RUNNING or is_over(seen)
                )
                await self._gateway.cancel(task)
            case "retry":
                ended = await self._follower.until(task, is_over)
                if ended["status"] != "failed":
                    raise BadAnswer(f"first attempt must fail, is {ended['status']}")
                version = int(ended["task_version"])
                await self._gateway.retry(task, "the script asks for a second attempt")
                await self._follower.until(task, lambda seen: seen["task_version"] > version)

    async def _settle(self) -> None:
        """Wait until the provider has sent its last callback and no event follows any more."""
        for one in self._played:
            one.provider = await self._provider.job(one.scenario.key)
            while not all(job["over"] for job in one.provider["jobs"]):
                await asyncio.sleep(PAUSE_S)
                one.provider = await self._provider.job(one.scenario.key)
        await self._follower.quiet(QUIET_S)

    async def _judge(self, counts: dict[str, int], late_after: float | None) -> Report:
        account = self._follower.account
        report = Report(jobs=len(self._played), events=len(account.events), faults=counts)
        if late_after is not None:
            report.failures.append(f"not over within {late_after:g} s")
        try:
            async with asyncio.timeout(REREAD_S):
                await self._reread()
                head = await self._gateway.head()
                replayed = await reread_stream(self._gateway, account, head)
        except (TimeoutError, httpx.HTTPError, BadAnswer, ValueError, KeyError) as error:
            report.failures.append(f"the state could not be read again: {error!r}")
            report.failures += [stuck(one, account) for one in self._played]
            return report
        for one in self._played:
            self._count(report, one)
            if late_after is not None and not _at_an_end(one):
                report.failures.append(stuck(one, account))
            else:
                report.failures += judge_job(one, account)
        report.lost, proofs = count_lost(self._played, account, replayed, head)
        report.failures += proofs
        report.failures += judge_faults(counts, [one.scenario for one in self._played])
        report.p50_ms, report.p99_ms = percentiles(account)
        return report

    async def _reread(self) -> None:
        for one in self._played:
            if one.task_id is not None:
                one.snapshot = await self._gateway.task(one.task_id)
            one.provider = await self._provider.job(one.scenario.key)

    def _count(self, report: Report, one: Played) -> None:
        match (one.snapshot or {}).get("status"):
            case "ready":
                report.ready += 1
            case "failed":
                report.failed += 1
            case "canceled":
                report.canceled += 1


async def reread_stream(gateway: Gateway, account: Account, head: int) -> set[int]:
    """Read the stream once more from where the client began up to `head`; return its ids."""
    replay = Account()
    start = account.first_cursor or 0
    if start == head:
        return set()
    async with aclosing(read(gateway, start)) as reads:
        async for frames in reads:
            for frame in frames:
                replay.take(frame, 0.0)
            if replay.cursor is not None and replay.cursor >= head:
                break
    return {event_id for event_id in replay.events if event_id <= head}


def percentiles(account: Account) -> tuple[float | None, float | None]:
    """Return the median and the 99th percentile of commit to client, in milliseconds."""
    times = sorted(seen.latency_s for seen in account.events.values() if seen.latency_s is not None)
    if not times:
        return None, None

    def rank(share: float) -> float:
        return round(1000 * times[max(0, math.ceil(share * len(times)) - 1)], 2)

    return rank(0.5), rank(0.99)


def stuck(one: Played, account: Account) -> str:
    """Return where a job that is not over stands, as the client and the provider see it."""
    if one.trouble is not None:
        return f"{one.name}: {one.trouble}"
    latest = account.latest.get(one.task_id or "")
    client = (
        "no event seen"
        if latest is None
        else f"{latest.payload['status']}/{latest.payload['stage']} version {latest.version}"
    )
    jobs = [
        f"{job['phase']} after {job['polls']} polls and {len(job['deliveries'])} deliveries"
        for job in one.provider.get("jobs", ())
    ]
    return (
        f"{one.name}: stuck before {one.scenario.end}; task {one.task_id}: {client}; "
        f"provider: {', '.join(jobs) or 'never asked'}"
    )


def _at_an_end(one: Played) -> bool:
    return one.snapshot is not None and is_over(one.snapshot)
