"""Bursts of callbacks from senders who send again, as providers do, until they are answered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import psycopg

from tests.py.intake.jobs import Jobs
from tests.py.intake.signing import sign


@dataclass
class Burst:
    """Callbacks about some jobs, each sent by two senders who do not know of each other."""

    jobs: Jobs
    events: dict[str, bytes] = field(repr=False)
    acknowledged: set[str] = field(default_factory=set, repr=False)
    refused: int = 0
    unanswered: int = 0

    @classmethod
    def about(cls, jobs: Jobs, count: int, each: int = 20) -> Burst:
        """Make `count` jobs that run, and `each` callbacks about every one, the last its end."""
        jobs.submitted(count)
        events: dict[str, bytes] = {}
        for (attempt,) in jobs.attempts("id"):
            said: list[dict[str, Any]] = [
                {"status": "processing", "logs": f" {100 * n // each}%|#"} for n in range(each - 1)
            ]
            said.append({"status": "succeeded", "output": "https://replicate.delivery/x.mp4"})
            for n, body in enumerate(said):
                events[f"{attempt}-{n}"] = orjson.dumps({"id": f"job-{attempt}", **body})
        return cls(jobs, events)

    async def send(self, url: str, connections: int = 32, patience: float = 240.0) -> None:
        """Send everything twice and in any order; return once each was acknowledged."""
        left = [*self.events, *self.events]
        random.Random(7).shuffle(left)

        async def sender() -> None:
            # A client for each: one pool with many in its queue spends its time on the queue.
            async with httpx.AsyncClient(
                base_url=url, timeout=15, trust_env=False, verify=False
            ) as client:
                while left:
                    await self._deliver(client, left.pop())

        async with asyncio.timeout(patience):
            await asyncio.gather(*(sender() for _ in range(connections)))

    async def _deliver(self, client: httpx.AsyncClient, event: str) -> None:
        body = self.events[event]
        while True:
            try:
                answer = await client.post(
                    "/callbacks/replicate", content=body, headers=sign(body, event_id=event)
                )
            except httpx.TransportError:
                self.unanswered += 1
            else:
                if answer.is_success:
                    self.acknowledged.add(event)
                    return
                assert answer.status_code in (429, 503), answer.status_code
                self.refused += 1
            await asyncio.sleep(random.uniform(0.05, 0.2))

    def stored(self) -> set[str]:
        """Return the callbacks that are in the inbox, each of which must be there once."""
        rows: Sequence[tuple[str]] = self.jobs.session.execute(
            "select dedup_key from aivedio.provider_callback_inbox"
        ).fetchall()
        keys = [key for (key,) in rows]
        assert len(keys) == len(set(keys))
        return set(keys)

    def check(self) -> None:
        """Everything that was acknowledged is stored once, and has one effect."""
        assert self.acknowledged == set(self.events) == self.stored()
        work_off(self.jobs.session)
        rows = self.jobs.session.execute(
            "select count(*), count(distinct task_id), count(distinct (task_id, task_version))"
            " from aivedio.task_events where public_payload ->> 'status' = 'provider_succeeded'"
        ).fetchone()
        jobs = len(self.jobs.attempts("id"))
        assert rows == (jobs, jobs, jobs)
        assert self.jobs.statuses() == ["provider_succeeded"] * jobs


def work_off(session: psycopg.Connection[Any]) -> None:
    """Apply what waits, in small batches, as the inbox process does."""
    while True:
        row = session.execute(
            "select claimed from aivedio.process_inbox('{0,1,2,3,4,5,6,7}', 50)"
        ).fetchone()
        if row is None or row[0] == 0:
            return
