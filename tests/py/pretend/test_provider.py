"""The provider's own manners: deadlines, retention, bounded memory, plans, and who may ask."""

from __future__ import annotations

from typing import Any

import pytest

from edge.pretend import plan
from edge.pretend.dialects import replicate
from edge.pretend.dialects.common import Account
from edge.pretend.dialects.replicate import Replicate
from tests.py.pretend.conftest import SECRET, Provider, running, until


async def test_a_deadline_before_the_start_aborts(pretend: Provider) -> None:
    made = await pretend.make({"queue_s": 0.3}, headers={"cancel-after": "0"})
    assert made["deadline"] is not None
    await pretend.ends(made["id"], "aborted")


async def test_a_deadline_after_the_start_cancels() -> None:
    async with running(speed=20) as pretend:
        made = await pretend.make({"run_s": 3600, "steps": 100}, headers={"cancel-after": "3s"})
        ended = await pretend.ends(made["id"], "canceled")
        assert ended["started_at"] is not None


async def test_an_hour_after_its_end_a_prediction_has_lost_its_data() -> None:
    async with running(speed=10_000) as pretend:
        made = await pretend.make()
        answer: dict[str, Any] = {}

        async def removed() -> bool:
            nonlocal answer
            answer = (await pretend.poll(made["id"])).json()
            return answer["data_removed"] is True

        await until(removed)
        assert (answer["output"], answer["input"], answer["logs"]) == (None, {}, "")
        assert answer["status"] == "succeeded"
        assert (await pretend.http.get(f"/files/{made['id']}.mp4")).status_code == 404


async def test_a_file_is_not_there_before_the_job_succeeded(pretend: Provider) -> None:
    made = await pretend.make({"outcome": "canceled"})
    assert (await pretend.http.get(f"/files/{made['id']}.mp4")).status_code == 404


async def test_memory_is_bounded_and_the_oldest_finished_job_goes_first() -> None:
    async with running(max_jobs=2) as pretend:
        first = await pretend.make({"key": "first"})
        await pretend.over("first")
        running_one = await pretend.make({"outcome": "canceled"})
        await pretend.make({"outcome": "canceled"})
        assert (await pretend.poll(first["id"])).status_code == 404
        assert (await pretend.poll(running_one["id"])).status_code == 200

        refused = await pretend.create()
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "5"


@pytest.mark.parametrize(
    "bad",
    [
        {"outcome": "maybe"},
        {"faults": ["dorp"]},
        {"faults": "drop"},
        {"run_s": -1},
        {"run_s": True},
        {"times": 99},
        {"sed": 1},
        {"key": ""},
        {"attempts": []},
        {"attempts": [1]},
        [],
    ],
)
async def test_a_plan_with_a_mistake_is_refused(pretend: Provider, bad: Any) -> None:
    response = await pretend.http.post(
        "/v1/predictions", json={"version": "a/b", "input": {"pretend": bad}}
    )
    assert response.status_code == 422
    assert "pretend" in response.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"version": "a/b"}',
        b'{"input": {}}',
        b'{"version": "a/b", "input": {}, "webhook": "ftp://x"}',
        b'{"version": "a/b", "input": {}, "webhook": "http://x", "webhook_events_filter": ["x"]}',
    ],
)
async def test_a_malformed_submission_is_refused(pretend: Provider, body: bytes) -> None:
    response = await pretend.http.post("/v1/predictions", content=body)
    assert response.status_code == 422


async def test_a_huge_submission_is_refused(pretend: Provider) -> None:
    response = await pretend.http.post("/v1/predictions", content=b" " * (2 * 1024 * 1024))
    assert response.status_code == 413


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer nobody", "Basic cjhfdG9rZW4="])
async def test_without_the_token_nothing_is_told(pretend: Provider, header: str | None) -> None:
    headers = {"authorization": header} if header else {"authorization": ""}
    for method, path in [
        ("POST", "/v1/predictions"),
        ("GET", "/v1/predictions"),
        ("GET", "/v1/predictions/x"),
        ("POST", "/v1/predictions/x/cancel"),
        ("GET", "/v1/webhooks/default/secret"),
    ]:
        response = await pretend.http.request(method, path, headers=headers)
        assert response.status_code == 401, path


async def test_list_is_paged(pretend: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicate, "PAGE", 3)
    made = [(await pretend.make())["id"] for _ in range(5)]
    first = (await pretend.http.get("/v1/predictions")).json()
    second = (await pretend.http.get(first["next"])).json()
    assert [one["id"] for one in first["results"] + second["results"]] == made[::-1]
    assert second["next"] is None and second["previous"] is not None


@pytest.mark.parametrize("kind", ["x" * 60, "UPPER", "a-b"])
async def test_only_plausible_kinds_are_counted(pretend: Provider, kind: str) -> None:
    assert (await pretend.http.post(f"/pretend/faults/{kind}")).status_code == 404


def test_each_submission_of_a_key_has_its_plan_and_the_last_serves_all_that_follow() -> None:
    script = {"key": "k", "run_s": 1, "attempts": [{"outcome": "failed"}, {"run_s": 2}]}
    assert [plan.read(script, n).outcome for n in (1, 2, 3)] == ["failed", "succeeded", "succeeded"]
    assert [plan.read(script, n).run_s for n in (1, 2, 3)] == [1, 2, 2]


@pytest.mark.parametrize("token, secret", [("", SECRET), ("t", ""), ("t", "whsec_?"), ("t", "x")])
def test_a_provider_without_usable_secrets_does_not_start(token: str, secret: str) -> None:
    with pytest.raises(ValueError):
        Replicate(Account(token, secret))
