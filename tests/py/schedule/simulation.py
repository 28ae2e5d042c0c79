"""
Hours of polling in minutes: the real scheduling functions, a clock that is set, jobs that end.

Jobs are spread over tenants, providers and models. All are due at the same moment when it begins,
as after an outage. Each tick of a tenth of a second claims what SQL hands out and settles it with
what the job's provider would answer at that time. A job that was seen to end makes room for a new
one, so that as many as at the start stay in flight. Every poll is written down, and judged
afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

TICK = timedelta(seconds=0.1)
START = datetime(2026, 6, 24, 3, 10, tzinfo=UTC)
WARM_UP_S = 20

SETUP = Path(__file__).with_suffix(".sql")

# The most polls in any window of so many seconds, of each bucket of a level.
BUSIEST = """
select coalesce(max(polls), 0) from (
  select count(*) over (
    partition by {bucket} order by at range between current row and interval '{window}' following
  ) as polls
  from simulated.poll
) as each
"""


@dataclass(frozen=True, slots=True)
class Quotas:
    """Polls per second at each level."""

    platform: int
    tenant: int
    alpha: int
    beta: int
    model: int


class Simulation:
    """One run in a database of its own."""

    def __init__(self, session: psycopg.Connection[Any], jobs: int, quotas: Quotas) -> None:
        self._session = session
        self.jobs = jobs
        self.quotas = quotas
        self.now = START

    def prepare(self) -> None:
        """Make the providers, the quotas and the jobs, all due at once."""
        run = self._session.execute
        run(SETUP.read_bytes())
        run("select set_config('aivedio.now', %s, false)", [START.isoformat()])
        run("select setseed(0.5)")
        for level in ("platform", "tenant"):
            rate = getattr(self.quotas, level)
            run(
                "update aivedio.settings set value = to_jsonb(%s::integer) where name = %s",
                [rate, f"poll_rate_{level}"],
            )
        for provider in ("alpha", "beta"):
            run(
                "select aivedio.define_provider(%s, profile || jsonb_build_object('quota',"
                " jsonb_build_object('provider', %s::integer, 'model', %s::integer)))"
                " from aivedio.providers where name = 'replicate'",
                [provider, getattr(self.quotas, provider), self.quotas.model],
            )
        for first in range(0, self.jobs, 1000):
            many = min(1000, self.jobs - first)
            run(f"select simulated.add('{START}', '{START}') from generate_series(1, {many})")
        run("select aivedio.watch_projects(array[fixture.id('large3')])")
        run("vacuum analyze aivedio.task_attempts, aivedio.generation_tasks")

    def run(self, seconds: int) -> None:
        """Let so many seconds pass."""
        for tick in range(seconds * 10):
            self.now += TICK
            self._session.execute("select simulated.tick(%s)", [self.now])
            if tick % 300 == 0:
                self._session.execute("select aivedio.watch_projects(array[fixture.id('large3')])")

    def one(self, query: str) -> Any:
        """Return a query's first value."""
        row = self._session.execute(query).fetchone()
        assert row is not None
        return row[0]

    def busiest(self, bucket: str, window_s: int, where: str = "") -> int:
        """Return the most polls that any window of this length saw in one bucket."""
        # A window of so many seconds is half open: its end belongs to the next one.
        window = f"{window_s - 0.05} seconds"
        query = BUSIEST.format(bucket=bucket, window=window)
        return int(self.one(query.replace("simulated.poll", f"simulated.poll {where}")))

    def summary(self) -> str:
        """Return what was seen, for a person who reads the log of a run."""
        busiest = ", ".join(f"{window} s: {self.busiest('true', window)}" for window in (1, 10, 60))
        return (
            f"{self.jobs} jobs, {self.rate():.1f} polls/s, busiest window {busiest},"
            f" peak/mean {self.peak_over_mean():.2f}, longest wait {self.longest_wait():.1f} s,"
            f" mean wait {self.mean_wait('first'):.1f} s of those that go first,"
            f" {self.mean_wait('not first'):.1f} s of others"
        )

    def rate(self) -> float:
        """Return polls per second, after the beginning."""
        return float(
            self.one(
                "select count(*) / extract(epoch from max(at) - min(at)) from simulated.poll"
                f" where at > '{START + timedelta(seconds=WARM_UP_S)}'"
            )
        )

    def peak_over_mean(self) -> float:
        """Return the busiest second's polls by those of the average second, after the beginning."""
        return float(
            self.one(
                "select max(polls) / avg(polls) from ("
                " select date_trunc('second', at), count(*) as polls from simulated.poll"
                f" where at between '{START + timedelta(seconds=WARM_UP_S)}'"
                f" and '{self.now - timedelta(seconds=1)}' group by 1) as each"
            )
        )

    def longest_wait(self, which: str = "true") -> float:
        """Return the longest that a job was due and not asked about, in seconds, to this day."""
        return float(
            self.one(
                "select extract(epoch from greatest("
                f" (select max(wait) from simulated.poll where {which}),"
                f" (select '{self.now}'::timestamptz - min(due_at) from simulated.job)))"
            )
        )

    def mean_wait(self, which: str) -> float:
        """Return the average wait, after the beginning, in seconds."""
        return float(
            self.one(
                f"select extract(epoch from avg(wait)) from simulated.poll where {which}"
                f" and at > '{START + timedelta(seconds=2 * WARM_UP_S)}'"
            )
        )
