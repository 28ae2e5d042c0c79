"""The scripted run believes nobody: a system that lies about one thing fails it."""

from __future__ import annotations

import pytest

from edge.pretend import scenarios, script
from edge.pretend.faults import Fault
from edge.pretend.script import Report, Session
from tests.py.pretend.fake_system import Lies, running

JOBS = len(scenarios.ALL)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "QUIET_S", 0.1)


async def judged(timeout_s: float = 20.0, **lies: object) -> Report:
    async with running(Lies(**lies)) as system:  # type: ignore[arg-type]
        return await script.run(
            gateway_url=system.url,
            session=Session(login_url=f"{system.url}/login?token=t"),
            provider_url=system.url,
            jobs=JOBS,
            faults="all",
            timeout_s=timeout_s,
        )


async def test_an_honest_system_passes() -> None:
    report = await judged()
    assert report.failures == []
    counts = report.as_json()
    assert counts["jobs"] == JOBS == counts["ready"] + counts["failed"] + counts["canceled"]
    assert counts["events"] > 3 * JOBS
    assert counts["lost"] == 0
    assert 0 <= counts["p50_ms"] <= counts["p99_ms"] < 5000
    assert list(counts) == [
        "jobs", "ready", "failed", "canceled", "events", "faults", "lost", "p50_ms", "p99_ms",
    ]  # fmt: skip


async def test_a_stream_that_breaks_off_is_followed_from_its_cursor() -> None:
    report = await judged(cut_stream_after=7)
    assert report.failures == []
    assert report.lost == 0


async def test_an_event_that_the_client_never_got_is_lost() -> None:
    report = await judged(hide_version=1)
    assert report.lost == JOBS
    assert any("versions [1] were never seen" in failure for failure in report.failures)
    assert any("events of the stream were never seen" in failure for failure in report.failures)


async def test_a_chain_that_does_not_hold_counts_as_lost() -> None:
    report = await judged(break_chain=True)
    assert report.lost > 0
    assert any("follows" in failure for failure in report.failures)


async def test_a_wrong_end_fails_each_job() -> None:
    report = await judged(wrong_end=True)
    assert len([f for f in report.failures if "must be" in f]) >= JOBS
    assert report.lost == 0


async def test_a_snapshot_that_disagrees_with_the_stream_fails() -> None:
    report = await judged(stale_snapshot=True)
    assert any("on the stream, running in the snapshot" in failure for failure in report.failures)


async def test_a_second_generation_fails() -> None:
    report = await judged(submissions=3)
    assert len([f for f in report.failures if "was submitted 3 times" in f]) == JOBS


async def test_a_forged_callback_that_was_taken_fails() -> None:
    report = await judged(take_forged=True)
    assert [f.partition(": ")[2] for f in report.failures] == [
        "a forged callback was answered 204, must be 401"
    ]


async def test_a_fault_that_never_happened_fails() -> None:
    report = await judged(forget_fault="duplicate")
    assert report.failures == ["fault duplicate never happened"]


async def test_a_run_that_gets_stuck_says_where() -> None:
    report = await judged(timeout_s=1.0, never_end=True)
    assert report.failures[0] == "not over within 1 s"
    stuck = [failure for failure in report.failures if "stuck before" in failure]
    assert any("running/running version 2" in failure for failure in stuck)
    assert any("provider: running after 1 polls" in failure for failure in stuck)


@pytest.mark.parametrize(
    ("session", "why"),
    [
        (Session(bearer="x"), "names no project"),
        (Session(login_url="/nowhere"), "answered 404 and set no cookie"),
        (Session(bearer="x", project="p"), "404"),
    ],
)
async def test_a_session_that_is_refused_fails_the_run(session: Session, why: str) -> None:
    async with running(Lies()) as system:
        report = await script.run(
            gateway_url=system.url,
            session=session,
            provider_url=f"{system.url}/nobody",
            jobs=1,
            faults="none",
        )
    assert len(report.failures) == 1
    assert why in report.failures[0]


async def test_too_few_jobs_for_all_faults_are_refused() -> None:
    with pytest.raises(ValueError, match=f"at least {JOBS} jobs"):
        await script.run(
            gateway_url="http://127.0.0.1:1",
            session=Session(bearer="x", project="p"),
            provider_url="http://127.0.0.1:1",
            jobs=JOBS - 1,
            faults="all",
        )


def test_the_scenarios_make_every_kind_of_fault_happen_that_needs_no_waiting() -> None:
    covered = {fault for scenario in scenarios.ALL for fault in scenario.faults}
    # An abandoned media operation comes back only when its lease has run out.
    assert set(Fault) - covered == {Fault.MEDIA_CRASH}


def test_more_jobs_repeat_the_scenarios_under_keys_of_their_own() -> None:
    chosen = scenarios.choose(2 * JOBS + 1, "all", "r")
    assert len({scenario.key for scenario in chosen}) == 2 * JOBS + 1
    assert chosen[JOBS].plan == chosen[0].plan
