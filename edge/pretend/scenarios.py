"""
What the jobs of a scripted run go through, and what each must end as.

A scenario is told twice and independently: to the pretend provider, as the plan inside the job's
input, and to the judge, as the end that a correct system reaches. The system between them sees an
input like any other. Twenty jobs make every kind of fault happen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any, Literal

from edge.pretend.faults import Fault

Faults = Literal["all", "none"]
End = Literal["ready", "failed", "canceled"]

PACE = {"queue_s": 0.3, "run_s": 1.5, "steps": 6}


@dataclass(frozen=True, slots=True)
class Scenario:
    """
    One job: its plan, what the run does to it meanwhile, and how it must end.

    `error` is the public code of an end that nobody asked for. `submissions` is how often the
    provider must have been asked to generate: once, and once more for a retry of the run's own.
    """

    plan: dict[str, Any]
    end: End
    error: str | None = None
    action: Literal["watch", "cancel", "retry"] = "watch"
    key: str = ""
    faults: frozenset[Fault] = field(init=False)

    def __post_init__(self) -> None:
        """Collect the kinds of fault that this job makes happen."""
        plans = [self.plan, *self.plan.get("attempts", ())]
        named = {Fault(name) for plan in plans for name in plan.get("faults", ())}
        object.__setattr__(self, "faults", frozenset(named))

    @property
    def submissions(self) -> int:
        """Return how many submissions a correct system makes."""
        return 2 if self.action == "retry" else 1

    @property
    def title(self) -> str:
        """Return a name for messages: what makes this job special."""
        return "+".join(sorted(self.faults)) or str(self.plan.get("outcome", "plain"))

    def pretend(self) -> dict[str, Any]:
        """Return the plan as it goes into the job's input."""
        return {**PACE, **self.plan, "key": self.key}


def _faulty(*faults: Fault, **fields: Any) -> dict[str, Any]:
    return {"faults": [str(fault) for fault in faults], **fields}


ALL: tuple[Scenario, ...] = (
    Scenario({}, "ready"),
    Scenario(_faulty(Fault.DUPLICATE, Fault.SKEWED, Fault.MEDIA_FLAKY), "ready"),
    Scenario(
        {"attempts": [_faulty(Fault.REFUSED), _faulty(Fault.REORDER)]}, "ready", action="retry"
    ),
    Scenario(_faulty(Fault.DELAY, Fault.FILE_TRUNCATED), "ready"),
    Scenario(_faulty(Fault.DROP, Fault.FILE_ERROR), "ready"),
    Scenario(
        _faulty(Fault.DROP, outcome="failed", error="NSFW content detected"),
        "failed",
        "content_refused",
    ),
    Scenario(_faulty(Fault.LATE, Fault.CONTRADICT), "ready"),
    Scenario(_faulty(Fault.CONTRADICT, outcome="failed"), "failed", "provider_failed"),
    Scenario(
        _faulty(Fault.UNKNOWN_WORD, Fault.POLL_STALE, Fault.MEDIA_FAILED), "failed", "media_failed"
    ),
    Scenario(_faulty(Fault.EARLY, Fault.FILE_CORRUPT), "failed", "media_failed"),
    Scenario(
        _faulty(Fault.EARLY_END, Fault.FILE_GONE, queue_s=0.05, run_s=0.2),
        "failed",
        "media_failed",
    ),
    Scenario(
        _faulty(Fault.FORGED, Fault.OUTDATED, Fault.UNSIGNED, Fault.LIE, Fault.GARBLED, run_s=3),
        "ready",
    ),
    Scenario(
        _faulty(
            Fault.DROP,
            Fault.POLL_ERROR,
            Fault.POLL_MALFORMED,
            Fault.POLL_TRUNCATED,
            Fault.POLL_DRIP,
            slow_s=0.5,
        ),
        "ready",
    ),
    Scenario(
        _faulty(Fault.DROP, Fault.POLL_MISSING, Fault.POLL_THROTTLED, Fault.RESULT_ERROR), "ready"
    ),
    Scenario(
        _faulty(Fault.DROP, Fault.POLL_SLOW, outcome="aborted"),
        "canceled",
        "canceled_by_provider",
    ),
    Scenario(
        {"attempts": [_faulty(Fault.OLD_ATTEMPT, outcome="failed"), {"run_s": 3}]},
        "ready",
        action="retry",
    ),
    Scenario(
        {
            "attempts": [
                _faulty(Fault.OLD_ATTEMPT, outcome="failed"),
                {"run_s": 3, "outcome": "failed"},
            ]
        },
        "failed",
        "provider_failed",
        action="retry",
    ),
    Scenario({"outcome": "canceled"}, "canceled", action="cancel"),
    Scenario(_faulty(Fault.CANCEL_IGNORED), "ready", action="cancel"),
    Scenario(_faulty(Fault.REPLY_LOST), "ready"),
)
NONE: tuple[Scenario, ...] = (Scenario({}, "ready"),)


def check(jobs: int, faults: Faults) -> None:
    """Raise `ValueError` when there are too few jobs to make every kind of fault happen."""
    needed = len(_table(faults))
    if jobs < needed:
        raise ValueError(f"with faults {faults} a run needs at least {needed} jobs")


def choose(jobs: int, faults: Faults, run: str) -> list[Scenario]:
    """
    Return the scenarios of a run's jobs; `run` makes their keys this run's own.

    Raises what `check` raises.
    """
    check(jobs, faults)
    return [
        replace(scenario, key=f"{run}-{number}")
        for number, scenario in enumerate(islice(cycle(_table(faults)), jobs), start=1)
    ]


def _table(faults: Faults) -> tuple[Scenario, ...]:
    return ALL if faults == "all" else NONE
