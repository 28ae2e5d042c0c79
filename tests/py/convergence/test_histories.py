"""Histories that once went wrong, in the shortest form in which they did."""

from __future__ import annotations

from typing import Any

import pytest

from tests.py.convergence.history import History
from tests.py.convergence.payloads import job_of
from tests.py.convergence.things import LIFE, Attempt, Seen, Task


def begin(history: History, provider: str = "lumen", project: int = 0) -> Attempt:
    """Return the attempt of a new task."""
    number = len(history.model.tasks)
    task = history.create(history.projects[project], history.providers[provider], f"task {number}")
    assert task
    return task.current


def submit(history: History, provider: str = "lumen", project: int = 0) -> Attempt:
    """Return an attempt that was submitted and accepted."""
    attempt = begin(history, provider, project)
    history.claim_submits()
    history.settle_submit(attempt, "accepted")
    return attempt


def seen(attempt: Attempt, status: str | None, source: str = "webhook", **more: Any) -> Seen:
    error = {"failed": "provider_failed", "canceled": "canceled_by_provider"}.get(status or "")
    return Seen(source, status, job=job_of(attempt), error=error)._replace(**more)


def call_back(
    history: History, attempt: Attempt, status: str | None, **more: Any
) -> list[str | None]:
    history.callback(attempt, seen(attempt, status, **more))
    return history.work()


def poll(history: History, attempt: Attempt, status: str, **more: Any) -> str:
    history.advance_to(attempt.poll)
    assert attempt in history.claim_polls()
    return history.settle_poll(attempt, seen(attempt, status, "poll", **more))


def lose_sight(history: History, attempt: Attempt) -> None:
    while attempt.task.status != "provider_status_unknown":
        history.advance_to(attempt.poll)
        assert attempt in history.claim_polls()
        history.settle_poll(attempt, "timeout")


def tell_billing_everything(history: History, task: Task) -> None:
    for version in range(1, len(task.events) + 1):
        history.tell_billing(task, version)


def test_a_job_first_heard_of_by_an_unknown_word_is_polled(history: History) -> None:
    attempt = begin(history)
    history.claim_submits()
    assert call_back(history, attempt, None) == ["unknown_word"]
    assert history.settle_submit(attempt, "timeout") == "duplicate"
    assert poll(history, attempt, "succeeded") == "applied"


def test_a_job_that_turns_up_after_a_delayed_submission_is_polled(history: History) -> None:
    attempt = begin(history)
    history.claim_submits()
    history.settle_submit(attempt, "not_sent")
    assert call_back(history, attempt, "queued") == ["applied"]
    history.advance(600)
    assert history.claim_submits() == []
    assert attempt in history.claim_polls()


def test_a_lookup_keeps_a_submission_from_being_lost(history: History) -> None:
    attempt = begin(history)
    history.claim_submits()
    assert history.see(attempt, seen(attempt, "succeeded", "reconcile")) == "applied"
    history.advance(600)
    assert history.claim_submits() == []
    assert attempt.task.status == "provider_succeeded"


@pytest.mark.parametrize("answer", ["not_sent", "rejected"])
def test_a_late_no_closes_the_case_of_a_lost_submission(history: History, answer: str) -> None:
    attempt = begin(history)
    history.claim_submits()
    history.advance(600)
    history.claim_submits()
    (case,) = history.model.cases
    history.settle_submit(attempt, answer)
    assert case.resolution == "not_accepted"


def test_a_poll_that_works_again_leads_out_of_unknown_without_a_new_sequence(
    history: History,
) -> None:
    attempt = submit(history)
    call_back(history, attempt, "running", sequence=3)
    lose_sight(history, attempt)
    assert poll(history, attempt, "running", sequence=3) == "applied"
    assert attempt.task.status == "running"


def test_the_same_end_with_the_same_sequence_is_a_duplicate(history: History) -> None:
    attempt = submit(history)
    history.advance_to(attempt.poll)
    assert attempt in history.claim_polls()
    assert call_back(history, attempt, "succeeded", sequence=3) == ["applied"]
    assert (
        history.settle_poll(attempt, seen(attempt, "succeeded", "poll", sequence=3)) == "duplicate"
    )


def test_an_overtaken_failure_does_not_end_an_old_attempt(history: History) -> None:
    attempt = submit(history)
    call_back(history, attempt, "running", sequence=3)
    history.advance(LIFE + 1)
    history.start(attempt.task)
    call_back(history, attempt, "failed", sequence=2)
    assert not attempt.over
    call_back(history, attempt, "succeeded", sequence=4)
    assert history.adopt(attempt) == "applied"


def test_an_attempt_that_waited_ends_when_another_is_adopted(history: History) -> None:
    old = submit(history)
    history.advance(LIFE + 1)
    history.start(old.task)
    call_back(history, old, "succeeded")
    waiting = old.task.current
    history.adopt(old)
    assert (waiting.status, waiting.submit) == ("canceled", "withdrawn")
    assert history.claim_submits() == []


def test_what_a_replaced_attempt_reserved_is_refunded(history: History) -> None:
    old = submit(history)
    tell_billing_everything(history, old.task)
    history.advance(LIFE + 1)
    history.start(old.task)
    history.claim_submits()
    history.settle_submit(old.task.current, "accepted")
    tell_billing_everything(history, old.task)
    assert old.credits == {"reserve": 1, "refund": 1}


def test_what_is_settled_is_what_was_reserved(history: History) -> None:
    attempt = submit(history)
    tell_billing_everything(history, attempt.task)
    history.reprice(attempt.task.provider, 3)
    call_back(history, attempt, "failed")
    tell_billing_everything(history, attempt.task)
    assert attempt.credits == {"reserve": 1, "refund": 1}


def test_media_of_a_corrected_result_starts_anew(history: History) -> None:
    attempt = submit(history)
    task = attempt.task
    call_back(history, attempt, "succeeded", revision=1)
    history.tell_media(task, len(task.events))
    (backhaul,) = history.claim_media()
    history.report(backhaul, done=True)
    (verify,) = history.claim_media()
    call_back(history, attempt, "failed", revision=2)
    call_back(history, attempt, "succeeded", revision=3)
    assert history.tell_media(task, len(task.events)) == "opened"
    assert history.report(verify, done=True) == "stale_lease"
    assert history.claim_media() == [backhaul]


def test_media_that_nobody_wants_is_handed_out_to_nobody(history: History) -> None:
    attempt = submit(history, project=1)
    call_back(history, attempt, "succeeded")
    history.tell_media(attempt.task, len(attempt.task.events))
    assert history.cancel(attempt.task) == "applied"
    assert history.claim_media() == []


def test_outputs_stay_forgotten(history: History) -> None:
    attempt = submit(history)
    task = attempt.task
    call_back(history, attempt, "succeeded", outputs=1)
    history.tell_media(task, len(task.events))
    for _ in range(4):
        (operation,) = history.claim_media()
        history.report(operation, done=True, asset="ast_1")
    assert task.status == "ready"
    call_back(history, attempt, "succeeded", outputs=2)
    assert attempt.outputs == {1: False}


def test_a_fresh_job_that_is_not_found_is_not_unknown(history: History) -> None:
    attempt = submit(history)
    for _ in range(9):
        history.advance_to(attempt.poll)
        assert attempt in history.claim_polls()
        history.settle_poll(attempt, "not_found")
    assert (attempt.task.status, attempt.failures) == ("submitted", 0)


def test_a_canceled_task_was_never_submitted_in_any_respect(history: History) -> None:
    attempt = begin(history)
    history.cancel(attempt.task)
    assert (attempt.status, attempt.known, attempt.submit) == ("canceled", "canceled", "withdrawn")


def test_a_callback_that_waited_is_applied(history: History) -> None:
    """W4: how old it may be was judged when it came."""
    attempt = submit(history)
    history.callback(attempt, seen(attempt, "running"))
    history.advance(20 * 60)
    assert history.work() == ["applied"]


def test_a_repeat_is_known_after_its_payload_is_gone(history: History) -> None:
    """W13: three days later, and after the payload was purged; rows live for longer."""
    attempt = submit(history)
    event = history.callback(attempt, seen(attempt, "succeeded"))
    history.work()
    for days in (3, 20):
        history.advance(days * 86400)
        history.purge()
        history.callback(attempt, seen(attempt, "succeeded"), event=event)
        assert history.work() == []
