"""What operators see, and what nobody does."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.py.conftest import Connect
from tests.py.console.running import WHO, Console, bearer
from tests.py.console.seed import PRIVATE, Seed
from tests.py.support.sessions import value

LOOKS = (
    "me",
    "pipeline",
    "alarms",
    "cases",
    "callbacks",
    "parked",
    "providers",
    "report",
    "actions",
)


async def test_what_went_wrong_is_there(console: Console, seed: Seed) -> None:
    pipeline = await console.look("pipeline")
    assert pipeline["inbox_dead"] == 2
    assert pipeline["outbox_parked"] == 1
    assert pipeline["bus"]["media"]["dead"] == 2
    assert pipeline["circuits"] == {"runway:default": "open"}
    assert pipeline["alarms"] == len((await console.look("alarms"))["alarms"]) >= 3
    cases = {known["kind"]: known for known in (await console.look("cases"))["cases"]}
    assert cases["conflict"]["task_id"] == seed.over
    assert cases["conflict"]["resolutions"] == ["kept"]
    assert cases["stale_success"]["resolutions"] == ["kept", "adopted"]
    assert [one["kind"] for one in (await console.look("cases?kind=orphan"))["cases"]] == [
        "orphan"
    ] * 2
    dead = {one["id"]: one for one in (await console.look("callbacks"))["callbacks"]}
    assert dead[seed.callback]["task_id"] == seed.waits
    assert dead[seed.orphan]["task_id"] is None
    below = await console.look(f"callbacks?before={max(dead)}")
    assert [one["id"] for one in below["callbacks"]] == [min(dead)]
    (parked,) = (await console.look("parked"))["parked"]
    assert (parked["id"], parked["task_id"], parked["error"]) == (
        seed.message,
        seed.over,
        "TooLarge",
    )
    letters = (await console.look("letters/media"))["letters"]
    assert [letter["error"] for letter in letters] == ["Rejected VC701"] * 2
    providers = (await console.look("providers"))["providers"]
    (runway,) = (one for one in providers if one["name"] == "runway")
    assert runway["circuits"][0]["reason"] == "credential_refused"
    today = {one["provider"]: one for one in (await console.look("report"))["today"]}
    assert today["replicate"]["conflicts"] == 1
    done = [one["action"] for one in (await console.look("actions"))["actions"]]
    assert done == ["rotate_credential", "start_attempt"]
    assert await console.look("me") == {
        "who": WHO,
        "role": "read",
        "expires_at": pytest.approx(time.time() + 3600, abs=60),
    }


async def test_a_job_is_found_and_its_history_told(console: Console, seed: Seed) -> None:
    for words in (seed.over, f" {seed.over.upper()} ", "provider-over", "request-attempt of over"):
        (found,) = (await console.look(f"tasks?q={words}"))["tasks"]
        assert found["task_id"] == seed.over
    assert (await console.look("tasks?q=nothing"))["tasks"] == []
    told = await console.look(f"tasks/{seed.over}")
    assert told["id"] == seed.over
    assert told["why"]["reasons"] == ["over", "case_open"]
    kinds = [(entry["kind"], entry["what"]) for entry in told["history"]]
    assert ("callback", "done") in kinds
    assert ("observation", "conflict") in kinds
    assert ("event", "failed") in kinds
    assert ("outbox", "parked") in kinds
    assert ("case", "opened") in kinds
    moments = [entry["at"] for entry in told["history"]]
    assert moments == sorted(moments)


async def test_nothing_private_is_in_any_answer(
    console: Console, seed: Seed, connect: Connect
) -> None:
    held = value(
        connect(),
        "select (select string_agg(payload::text, '') from aivedio.provider_callback_inbox)"
        " || (select string_agg(url, '') from aivedio.attempt_outputs)"
        " || (select string_agg(input::text, '') from aivedio.generation_tasks)"
        " || (select string_agg(detail::text, '') from aivedio.alarms)"
        " || (select string_agg(coalesce(error_detail, ''), '') from aivedio.task_attempts)"
        " || (select string_agg(secret_ref, '') from aivedio.provider_credentials)",
    )
    assert [word for word in PRIVATE if word not in held] == [], "there is something to leak"
    paths = [*LOOKS, "letters/media", *(f"tasks/{t}" for t in (seed.waits, seed.over, seed.twice))]
    answers = [(path, await console.client.get(f"/api/{path}", headers=bearer())) for path in paths]
    for name in ("rehearse_callback", "replay_callback"):
        answers.append((name, await console.act(name, callback=seed.callback, reason="a test")))
    hashes = value(
        connect(),
        "select array_agg(encode(callback_token_hash, 'hex')) from aivedio.task_attempts"
        " where callback_token_hash is not null",
    )
    for path, answer in answers:
        assert answer.status_code == 200, f"{path}: {answer.text}"
        for word in (*PRIVATE, *hashes):
            assert word not in answer.text, path
        assert not re.search(r"https?:", answer.text), path
        assert answer.headers["cache-control"] == "no-store"


NONSENSE = [
    ("tasks", 400),
    ("tasks?q=", 400),
    (f"tasks?q={'x' * 301}", 400),
    ("tasks?q=%00", 400),
    ("callbacks?before=x", 400),
    ("callbacks?before=-1", 400),
    ("callbacks?before=99999999999999999999", 400),
    ("callbacks?before=%D9%A1", 400),
    ("cases?kind=%27", 400),
    ("tasks/x", 404),
    ("tasks/00000000-0000-7000-8000-000000000000", 404),
    ("letters/nobody", 404),
    ("letters/%27;--", 404),
    ("nothing", 404),
]


async def test_nonsense_gets_a_problem(console: Console) -> None:
    for path, status in NONSENSE:
        answer = await console.client.get(f"/api/{path}", headers=bearer("read"))
        assert answer.status_code == status, path
        assert answer.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = answer.json()
        assert problem["status"] == status
        assert problem["trace_id"] == answer.headers["x-request-id"]


async def test_the_page_is_of_this_host_alone(console: Console) -> None:
    page = await console.client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"(src|href)=\"(https?:)?//", page.text)
    for path in re.findall(r"(?:src|href)=\"((?:static|base)/[^\"]+)\"", page.text):
        assert (await console.client.get(f"/{path}")).status_code == 200, path
    assert (await console.client.get("/static/../facts.py")).status_code == 404
