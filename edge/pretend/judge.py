"""
Was it as the script says? Nothing here asks the system for its opinion.

What a job must end as comes from its scenario. What the system shows is read again after the
end, twice: each task's snapshot, and the whole stream once more from where the client began. What
the provider did and was answered comes from the provider.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edge.pretend.faults import Fault
from edge.pretend.follow import TERMINAL, Account
from edge.pretend.jobs import Phase
from edge.pretend.scenarios import Scenario

REFUSED_FAULTS = frozenset({Fault.FORGED, Fault.OUTDATED, Fault.UNSIGNED})


@dataclass(slots=True)
class Played:
    """A scenario that was played: the task it became, and all that was found out about it."""

    scenario: Scenario
    task_id: str | None = None
    snapshot: dict[str, Any] | None = None
    provider: dict[str, Any] = field(default_factory=dict)
    trouble: str | None = None

    @property
    def name(self) -> str:
        """Return what messages call this job."""
        return f"job {self.scenario.key} ({self.scenario.title})"


def judge_job(played: Played, account: Account) -> list[str]:
    """Return everything about one job that is not as its scenario says."""
    scenario, name = played.scenario, played.name
    if played.trouble is not None:
        return [f"{name}: {played.trouble}"]
    if played.task_id is None or played.snapshot is None:
        return [f"{name}: has no task"]
    wrong = [f"{name}: {text}" for text in _ending(scenario, played.snapshot)]
    wrong += [f"{name}: {text}" for text in _agreement(played.snapshot, played.task_id, account)]
    wrong += [f"{name}: {text}" for text in _deeds(scenario, played.provider)]
    return wrong


def count_lost(
    played: list[Played], account: Account, replayed: set[int], head: int
) -> tuple[int, list[str]]:
    """
    Return how many events the client missed, and what proves it.

    Three proofs that do not depend on each other: a task of version n has had n events, but for
    progress that a replay leaves out; the stream, read once more, holds no id that the client did
    not see; each event named the one before it.
    """
    proofs: list[str] = []
    by_version = 0
    for one in played:
        if one.snapshot is None or one.task_id is None:
            continue
        seen = account.versions.get(one.task_id, set())
        missing = set(range(1, int(one.snapshot["task_version"]) + 1)) - seen
        missing -= account.skipped.get(one.task_id, set())
        by_version += len(missing)
        if missing:
            proofs.append(f"{one.name}: versions {sorted(missing)} were never seen")
    by_id = replayed - account.events.keys()
    if by_id:
        proofs.append(f"{len(by_id)} events of the stream were never seen: {sorted(by_id)[:10]}")
    # A replay may leave out progress that a later event of the task has overtaken.
    if unknown := account.events.keys() - replayed - account.mere_progress():
        proofs.append(f"events were seen that the stream does not hold: {sorted(unknown)[:10]}")
    if account.cursor != head:
        proofs.append(f"the client stands at {account.cursor}, the stream's head is {head}")
    proofs += account.breaks
    lost = max(by_version, len(by_id), len(account.breaks), int(account.cursor != head))
    return lost, proofs


def judge_faults(counts: dict[str, int], scenarios: list[Scenario]) -> list[str]:
    """Return the kinds of fault that were to happen and did not, and those that were not to."""
    wanted = {str(fault) for scenario in scenarios for fault in scenario.faults}
    missing = sorted(wanted - {kind for kind, count in counts.items() if count})
    unasked = sorted(counts.keys() - wanted)
    return [f"fault {kind} never happened" for kind in missing] + [
        f"fault {kind} happened unasked" for kind in unasked
    ]


def _ending(scenario: Scenario, snapshot: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    status, error = snapshot.get("status"), snapshot.get("error") or {}
    if status != scenario.end:
        wrong.append(f"must be {scenario.end}, is {status} ({error.get('code')})")
    if (status == "ready") != (snapshot.get("asset_id") is not None):
        wrong.append(f"is {status} with asset_id {snapshot.get('asset_id')}")
    if status == scenario.end and scenario.error != error.get("code"):
        wrong.append(f"must have error {scenario.error}, has {error.get('code')}")
    if snapshot.get("attempt_no") != scenario.submissions:
        wrong.append(f"must be at attempt {scenario.submissions}, is {snapshot.get('attempt_no')}")
    return wrong


def _agreement(snapshot: dict[str, Any], task: str, account: Account) -> list[str]:
    latest = account.latest.get(task)
    if latest is None:
        return ["no event of it was ever seen"]
    shown = ("status", "stage", "progress", "asset_id", "error", "task_version")
    return [
        f"{name} is {latest.payload.get(name)} on the stream, {snapshot.get(name)} in the snapshot"
        for name in shown
        if latest.payload.get(name) != snapshot.get(name)
    ]


def _deeds(scenario: Scenario, provider: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    if provider["submissions"] != scenario.submissions:
        wrong.append(
            f"was submitted {provider['submissions']} times, must be {scenario.submissions}"
        )
    jobs: list[dict[str, Any]] = provider["jobs"]
    if scenario.action == "cancel" and not any(job["cancels"] for job in jobs):
        wrong.append("its cancel never reached the provider")
    if any(not Phase(job["phase"]).is_end for job in jobs):
        wrong.append("still runs at the provider")
    wrong += [text for job in jobs for text in _answers(job["deliveries"])]
    return wrong


def _answers(deliveries: list[dict[str, Any]]) -> list[str]:
    """A true callback is taken in the end; one that nobody signed, or too long ago, never is."""
    wrong: list[str] = []
    taken: dict[str, bool] = {}
    for delivery in deliveries:
        answer = delivery["answer"]
        if delivery["fault"] in REFUSED_FAULTS:
            if answer != 401:
                wrong.append(f"a {delivery['fault']} callback was answered {answer}, must be 401")
            continue
        accepted = answer is not None and 200 <= answer < 300
        key = f"{delivery['callback_id']} ({delivery['moment']}, {answer or delivery['error']})"
        taken[delivery["callback_id"]] = taken.get(delivery["callback_id"], False) or accepted
        if not accepted and not delivery["retried"]:
            wrong.append(f"callback {key} was not taken")
    wrong += [f"callback {callback} was never taken" for callback, ok in taken.items() if not ok]
    return wrong


def is_over(payload: dict[str, Any]) -> bool:
    """Answer whether an event or a snapshot shows a task at an end."""
    return payload["status"] in TERMINAL
