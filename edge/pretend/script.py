"""
The scripted run behind `aivedio up --once`: make jobs, watch them, judge them.

It is a stranger to the system that it judges. It speaks to the gateway's public HTTP API and
to the pretend provider, never to the database; and what each job must end as comes from its
scenario, which the pretend provider plays and the system has never seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Session:
    """
    Who the run is, for the gateway. Give one of the two.

    `login_url` is a one-time login link; the run opens it as a browser would and takes the
    cookie from the answer, and the project from the address that it is sent on to. `bearer` is
    a JWT and needs `project`.
    """

    login_url: str | None = None
    bearer: str | None = None
    project: str | None = None


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
    faults: Literal["all", "none"],
    timeout_s: float = 120.0,
) -> Report:
    """
    Play `jobs` scenarios and return what came of them.

    An empty `Report.failures` means success. Raises `ValueError` when `faults` is "all" and
    `jobs` is too small to make every kind of fault happen.
    """
    raise NotImplementedError
