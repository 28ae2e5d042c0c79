"""Each kind of fault, seen from outside the provider: by whom it calls and by who asks it."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from edge.pretend.faults import MEANING, MEDIA_HEADER, Fault
from tests.py.pretend.conftest import Provider, Receiver, until

END = ("succeeded", "failed", "canceled", "aborted")


async def played(pretend: Provider, receiver: Receiver, **plan: Any) -> dict[str, Any]:
    """Make a job, wait until it is over, callbacks and all, and return its description."""
    await pretend.make({"key": "k", **plan}, webhook=receiver.url)
    return await pretend.over("k")


def ends(receiver: Receiver) -> list[str]:
    """Return the ends that the callbacks claimed, each delivery once, in order of arrival."""
    return [status for status in receiver.statuses() if status in END]


def test_every_fault_says_what_it_means() -> None:
    assert set(MEANING) == set(Fault)


async def test_without_a_fault_callbacks_tell_the_jobs_life_in_order(
    pretend: Provider, receiver: Receiver
) -> None:
    await played(pretend, receiver)
    statuses = receiver.statuses()
    assert statuses[-1] == "succeeded"
    assert set(statuses[:-1]) == {"processing"}
    assert len({callback.id for callback in receiver.received}) == len(statuses)
    assert await pretend.faults() == {}


async def test_only_wanted_callbacks_are_sent(pretend: Provider, receiver: Receiver) -> None:
    await pretend.make({"key": "k"}, webhook=receiver.url, webhook_events_filter=["completed"])
    await pretend.over("k")
    assert receiver.statuses() == ["succeeded"]


async def test_a_terminal_callback_is_sent_again_under_its_id_until_it_is_taken(
    receiver: Receiver, pretend: Provider
) -> None:
    receiver.answers = [500, 307, 404]
    await pretend.make({"key": "k"}, webhook=receiver.url, webhook_events_filter=["completed"])
    await until(lambda: len(receiver.received) == 3)
    assert {callback.path for callback in receiver.received} == {"/"}  # no redirect was followed
    assert len({callback.id for callback in receiver.received}) == 1


async def test_an_intermediate_callback_is_never_sent_again(
    pretend: Provider, receiver: Receiver
) -> None:
    receiver.answers = [500]
    await played(pretend, receiver)
    ids = [callback.id for callback in receiver.received]
    assert receiver.received[0].status == "processing"
    assert ids.count(ids[0]) == 1


async def test_duplicate(pretend: Provider, receiver: Receiver) -> None:
    await played(pretend, receiver, faults=["duplicate"])
    ids = [callback.id for callback in receiver.received]
    assert all(ids.count(one) == 2 for one in ids)
    assert (await pretend.faults())["duplicate"] == len(ids) // 2


async def test_reorder(pretend: Provider, receiver: Receiver) -> None:
    await played(pretend, receiver, faults=["reorder"])
    statuses = receiver.statuses()
    assert statuses[0] == "succeeded"
    assert set(statuses[1:]) == {"processing"}
    assert receiver.received[-1].json["logs"].count("  0%") == 1  # the oldest came last
    assert (await pretend.faults())["reorder"] == len(statuses) - 1


async def test_delay(pretend: Provider, receiver: Receiver) -> None:
    made = await pretend.make(
        {"key": "k", "faults": ["delay"], "delay_s": 0.6}, webhook=receiver.url
    )
    await pretend.ends(made["id"], "succeeded")
    assert receiver.received == []
    await pretend.over("k")
    assert receiver.statuses()[-1] == "succeeded"
    assert (await pretend.faults())["delay"] == len(receiver.received)


async def test_drop(pretend: Provider, receiver: Receiver) -> None:
    job = await played(pretend, receiver, faults=["drop"])
    assert job["phase"] == "succeeded"
    assert receiver.received == []
    assert (await pretend.faults())["drop"] >= 2


async def test_late(pretend: Provider, receiver: Receiver) -> None:
    await played(pretend, receiver, faults=["late"])
    assert receiver.statuses()[-2:] == ["succeeded", "processing"]
    assert (await pretend.faults())["late"] == 1


@pytest.mark.parametrize(
    ("outcome", "claims"),
    [("succeeded", ["succeeded", "failed"]), ("failed", ["failed", "succeeded"])],
)
async def test_contradict(
    pretend: Provider, receiver: Receiver, outcome: str, claims: list[str]
) -> None:
    job = await played(pretend, receiver, faults=["contradict"], outcome=outcome)
    assert ends(receiver) == claims
    assert receiver.received[-1].id != receiver.received[-2].id
    assert await pretend.status(job["id"]) == outcome  # a poll keeps to the truth
    assert (await pretend.faults())["contradict"] == 1


async def test_old_attempt(pretend: Provider, receiver: Receiver) -> None:
    plan = {
        "key": "k",
        "attempts": [{"outcome": "failed", "faults": ["old_attempt"]}, {"run_s": 0.5}],
    }
    first = await pretend.make(plan, webhook=f"{receiver.url}/first")
    await pretend.ends(first["id"], "failed")
    assert ends(receiver) in ([], ["failed"])
    second = await pretend.make(plan, webhook=f"{receiver.url}/second")
    await pretend.over("k")
    await until(lambda: len(ends(receiver)) == 3)

    told = [(callback.path, callback.json["id"], callback.status) for callback in receiver.received]
    assert [one for one in told if one[2] in END] == [
        ("/first", first["id"], "failed"),
        ("/first", first["id"], "succeeded"),
        ("/second", second["id"], "succeeded"),
    ]
    assert (await pretend.faults())["old_attempt"] == 1


async def test_unknown_word_in_a_callback(pretend: Provider, receiver: Receiver) -> None:
    await played(pretend, receiver, faults=["unknown_word"])
    assert receiver.statuses().count("hydrating") == 1
    assert receiver.statuses()[-1] == "succeeded"
    assert (await pretend.faults())["unknown_word"] >= 1


async def test_unknown_word_in_a_poll(pretend: Provider) -> None:
    made = await pretend.make({"faults": ["unknown_word"]})
    await pretend.ends(made["id"], "hydrating")
    await pretend.ends(made["id"], "succeeded")
    assert (await pretend.faults())["unknown_word"] >= 1


async def test_lie(pretend: Provider, receiver: Receiver) -> None:
    other = await pretend.make({})
    await pretend.ends(other["id"], "succeeded")
    job = await played(pretend, receiver, faults=["lie"])
    told = [(callback.json["id"], callback.status) for callback in receiver.received]
    assert (other["id"], "failed") in told
    assert told[-1] == (job["id"], "succeeded")
    assert (await pretend.faults())["lie"] == 1


async def test_garbled(pretend: Provider, receiver: Receiver) -> None:
    await played(pretend, receiver, faults=["garbled"])
    cut = [callback for callback in receiver.received if not callback.body.endswith(b"}")]
    assert len(cut) == 1
    assert cut[0].headers["webhook-signature"].startswith("v1,")
    assert (await pretend.faults())["garbled"] == 1


async def test_skewed(pretend: Provider, receiver: Receiver) -> None:
    await played(pretend, receiver, faults=["skewed"])
    for callback in receiver.received:
        ahead = int(callback.headers["webhook-timestamp"]) - time.time()
        assert 235 < ahead < 245
    assert (await pretend.faults())["skewed"] == len(receiver.received)


async def test_forged_and_outdated_callbacks_are_not_sent_again(
    pretend: Provider, receiver: Receiver
) -> None:
    receiver.answers = [401] * 20
    made = await pretend.make(
        {"key": "k", "faults": ["forged", "outdated"]},
        webhook=receiver.url,
        webhook_events_filter=["start"],
    )
    job = await pretend.over("k")
    assert ends(receiver) == ["failed", "failed"]
    false = [one for one in job["deliveries"] if one["fault"]]
    assert [(one["fault"], one["answer"]) for one in false] == [("forged", 401), ("outdated", 401)]
    assert await pretend.status(made["id"]) == "succeeded"


@pytest.mark.parametrize("fault", ["early", "early_end"])
async def test_callbacks_before_the_submission_is_answered(
    pretend: Provider, receiver: Receiver, fault: str
) -> None:
    made = await pretend.make({"faults": [fault]}, webhook=receiver.url)
    assert receiver.received[0].json["id"] == made["id"]
    assert (made["status"] == "succeeded") == (fault == "early_end")
    if fault == "early_end":
        assert receiver.statuses()[-1] == "succeeded"
    assert (await pretend.faults())[fault] == 1


async def test_reply_lost(pretend: Provider, receiver: Receiver) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await pretend.create({"key": "k", "faults": ["reply_lost"]}, webhook=receiver.url)
    job = await pretend.over("k")
    assert job["phase"] == "succeeded"
    assert receiver.statuses()[-1] == "succeeded"
    assert (await pretend.faults())["reply_lost"] == 1


async def test_refused(pretend: Provider) -> None:
    response = await pretend.create({"key": "k", "faults": ["refused"]})
    assert response.status_code == 422
    assert await pretend.jobs("k") == []
    assert (await pretend.faults())["refused"] == 1


async def test_poll_faults_happen_in_a_fixed_order_and_hold_the_job_open(
    pretend: Provider,
) -> None:
    made = await pretend.make(
        {
            "faults": ["poll_malformed", "poll_error", "poll_throttled", "poll_missing"],
            "times": 2,
            "queue_s": 0,
            "run_s": 0.01,
        }
    )
    codes, bodies = [], []
    for _ in range(8):
        response = await pretend.poll(made["id"])
        codes.append(response.status_code)
        bodies.append(response.text)
        if response.status_code == 429:
            assert response.headers["retry-after"] == "1"
            assert "detail" in response.json()
    assert codes == [404, 404, 429, 429, 500, 503, 200, 200]
    for body in bodies[6:]:
        assert '"status":"succeeded"' not in body
    await pretend.ends(made["id"], "succeeded")
    assert await pretend.faults() == {
        "poll_error": 2,
        "poll_malformed": 2,
        "poll_missing": 2,
        "poll_throttled": 2,
    }


async def test_poll_slow(pretend: Provider) -> None:
    made = await pretend.make({"faults": ["poll_slow"], "slow_s": 0.3})
    started = time.monotonic()
    assert (await pretend.poll(made["id"])).status_code == 200
    assert time.monotonic() - started >= 0.3
    assert (await pretend.faults())["poll_slow"] == 1


async def test_poll_truncated(pretend: Provider) -> None:
    made = await pretend.make({"faults": ["poll_truncated"]})
    with pytest.raises(httpx.RemoteProtocolError):
        await pretend.poll(made["id"])
    assert (await pretend.poll(made["id"])).status_code == 200
    assert (await pretend.faults())["poll_truncated"] == 1


async def test_poll_drip(pretend: Provider) -> None:
    made = await pretend.make({"faults": ["poll_drip"], "slow_s": 0.3})
    pieces = []
    async with pretend.http.stream("GET", f"/v1/predictions/{made['id']}") as response:
        started = time.monotonic()
        async for piece in response.aiter_raw():
            pieces.append(piece)
        assert time.monotonic() - started >= 0.2
    assert len(pieces) > 1
    assert b'"status"' in b"".join(pieces)


async def test_result_error(pretend: Provider) -> None:
    made = await pretend.make({"faults": ["result_error"], "times": 2, "key": "k"})
    await pretend.over("k")
    codes = [(await pretend.poll(made["id"])).status_code for _ in range(3)]
    assert codes == [504, 504, 200]
    assert (await pretend.faults())["result_error"] == 2


async def test_unsigned(pretend: Provider, receiver: Receiver) -> None:
    await played(pretend, receiver, faults=["unsigned"])
    bare = [one for one in receiver.received if "webhook-signature" not in one.headers]
    assert [one.status for one in bare] == ["failed"]
    assert (await pretend.faults())["unsigned"] == 1


async def test_a_plan_in_a_text(pretend: Provider) -> None:
    text = 'a red kite pretend: {"outcome": "failed", "run_s": 0.05, "queue_s": 0, "error": "no"}'
    made = await pretend.make(None, input={"prompt": text})
    assert (await pretend.ends(made["id"], "failed"))["error"] == "no"
    refused = await pretend.create(None, input={"prompt": "pretend: nonsense"})
    assert refused.status_code == 422


async def test_poll_stale(pretend: Provider, receiver: Receiver) -> None:
    made = await pretend.make(
        {"faults": ["poll_stale"], "queue_s": 0, "outcome": "canceled"}, webhook=receiver.url
    )
    await until(lambda: receiver.statuses()[:1] == ["processing"])
    assert await pretend.status(made["id"]) == "starting"
    assert await pretend.status(made["id"]) == "processing"
    assert (await pretend.faults())["poll_stale"] == 1


async def test_cancel_ignored(pretend: Provider) -> None:
    made = await pretend.make({"key": "k", "faults": ["cancel_ignored"]})
    response = await pretend.http.post(f"/v1/predictions/{made['id']}/cancel")
    assert response.status_code == 200
    await pretend.ends(made["id"], "succeeded")
    assert (await pretend.jobs("k"))[0]["cancels"] == 1
    assert (await pretend.faults())["cancel_ignored"] == 1


async def finished(pretend: Provider, **plan: Any) -> str:
    """Make a job that succeeds and return its output's address."""
    made = await pretend.make(plan)
    return str((await pretend.ends(made["id"], "succeeded"))["output"])


async def test_an_output_matches_its_checksum(pretend: Provider) -> None:
    url = await finished(pretend, file_bytes=1000)
    first, second = await pretend.http.get(url), await pretend.http.get(url)
    assert first.content == second.content
    assert len(first.content) == 1000
    assert first.headers["etag"].strip('"') == hashlib.sha256(first.content).hexdigest()
    assert MEDIA_HEADER not in first.headers


async def test_file_error(pretend: Provider) -> None:
    url = await finished(pretend, faults=["file_error"], times=2)
    codes = [(await pretend.http.get(url)).status_code for _ in range(3)]
    assert codes == [503, 503, 200]
    assert (await pretend.faults())["file_error"] == 2


async def test_file_truncated(pretend: Provider) -> None:
    url = await finished(pretend, faults=["file_truncated"])
    with pytest.raises(httpx.RemoteProtocolError):
        await pretend.http.get(url)
    assert (await pretend.http.get(url)).status_code == 200
    assert (await pretend.faults())["file_truncated"] == 1


async def test_file_corrupt(pretend: Provider) -> None:
    url = await finished(pretend, faults=["file_corrupt"])
    response = await pretend.http.get(url)
    assert response.headers["etag"].strip('"') != hashlib.sha256(response.content).hexdigest()
    assert (await pretend.faults())["file_corrupt"] == 1


async def test_file_gone(pretend: Provider) -> None:
    url = await finished(pretend, faults=["file_gone"])
    assert (await pretend.http.get(url)).status_code == 404
    assert (await pretend.faults())["file_gone"] == 1


@pytest.mark.parametrize("fault", ["media_flaky", "media_crash", "media_failed"])
async def test_a_file_tells_the_media_plane_what_to_do_wrong(pretend: Provider, fault: str) -> None:
    url = await finished(pretend, faults=[fault])
    assert (await pretend.http.get(url)).headers[MEDIA_HEADER] == fault
    await pretend.http.post(f"/pretend/faults/{fault}")
    assert await pretend.faults() == {fault: 1}


def test_the_page_about_faults_says_what_the_code_says() -> None:
    page = Path(__file__).parents[3] / "docs" / "pretend.md"
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", page.read_text(), re.MULTILINE)
    told = {kind: meaning for kind, meaning in rows if kind in {str(fault) for fault in Fault}}
    assert told == {str(fault): meaning for fault, meaning in MEANING.items()}
