"""Snapshots, commands, problems and the page, over HTTP."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from edge.gateway import pages, problems
from edge.gateway.app import DEFAULT_MODEL, DEFAULT_PROVIDER
from tests.py.gateway.conftest import Gateway, Person

TASK = {"provider": "replicate", "model": "some/model", "input": {"prompt": "a cat"}}


def tasks(person: Person, *more: str) -> str:
    return "/".join([f"/projects/{person.projects[0]}/tasks", *more])


async def create(
    gateway: Gateway, person: Person, body: Any = TASK, **headers: str
) -> httpx.Response:
    return await gateway.client.post(
        tasks(person), headers={**person.bearer(), **headers}, json=body
    )


async def test_a_created_task_is_shown_as_the_database_holds_it(
    gateway: Gateway, person: Person
) -> None:
    created = await create(gateway, person)
    assert created.status_code == 201
    assert created.headers["cache-control"] == "no-store"
    task = created.json()["task"]
    assert created.headers["location"] == tasks(person, task["id"])
    assert created.json()["verdict"] == "applied"
    assert task["status"] == task["stage"] == "created"
    assert (task["task_version"], task["prompt"], task["model"]) == (1, "a cat", "some/model")
    assert task["error"] is None and task["asset_id"] is None

    shown = (await gateway.client.get(tasks(person, task["id"]), headers=person.bearer())).json()
    assert shown["task"] == task
    assert shown["last_event_id"] == await gateway.head(person.projects[0])
    assert shown["task"]["last_event_id"] == shown["last_event_id"]
    listed = (await gateway.client.get(tasks(person), headers=person.bearer())).json()
    assert [one["id"] for one in listed["tasks"]] == [task["id"]]
    assert listed["last_event_id"] == shown["last_event_id"]


async def test_a_task_older_than_the_stream_still_shows_the_streams_head(
    gateway: Gateway, person: Person
) -> None:
    old = await gateway.create_task(person)
    new = await gateway.create_task(person)
    shown = (
        await gateway.client.get(tasks(person, str(old["task_id"])), headers=person.bearer())
    ).json()
    assert shown["last_event_id"] == shown["task"]["last_event_id"] == new["event_id"]


async def test_provider_and_model_have_defaults(gateway: Gateway, person: Person) -> None:
    task = (await create(gateway, person, {"input": {"prompt": "x"}})).json()["task"]
    assert (task["provider"], task["model"]) == (DEFAULT_PROVIDER, DEFAULT_MODEL)


async def test_a_repeat_with_the_same_key_makes_nothing_new(
    gateway: Gateway, person: Person
) -> None:
    first = await create(gateway, person, **{"idempotency-key": "k"})
    answers = await asyncio.gather(
        *(create(gateway, person, **{"idempotency-key": "k"}) for _ in range(5))
    )
    for again in answers:
        assert (again.status_code, again.json()["verdict"]) == (200, "duplicate")
        assert again.json()["task"] == first.json()["task"]
    other = await create(gateway, person, {**TASK, "model": "another"}, **{"idempotency-key": "k"})
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")


async def test_pages_and_filters(gateway: Gateway, person: Person) -> None:
    made = [str((await gateway.create_task(person))["task_id"]) for _ in range(5)]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = (
            await gateway.client.get(tasks(person), params=query, headers=person.bearer())
        ).json()
        seen += [task["id"] for task in page["tasks"]]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert seen == made[::-1]
    for status, count in (("created", 5), ("ready", 0)):
        page = await gateway.client.get(
            tasks(person), params={"status": status}, headers=person.bearer()
        )
        assert len(page.json()["tasks"]) == count
    for wrong in (
        {"limit": "0"}, {"limit": "501"}, {"limit": "x"}, {"limit": "9" * 30}, {"after": "x"},
        {"status": "a b"}, {"status": ""},
    ):  # fmt: skip
        refused = await gateway.client.get(tasks(person), params=wrong, headers=person.bearer())
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_request"), wrong


async def test_cancel_and_retry(gateway: Gateway, person: Person) -> None:
    task = (await create(gateway, person)).json()["task"]
    path = tasks(person, task["id"])

    async def post(what: str, body: Any = None, **headers: str) -> httpx.Response:
        return await gateway.client.post(
            f"{path}/{what}", headers={**person.bearer(), **headers}, json=body
        )

    canceled = await post("cancel", {})
    assert (canceled.status_code, canceled.json()["task"]["status"]) == (200, "canceled")
    assert (await post("cancel")).json()["verdict"] == "duplicate"
    for reason in ("", "   "):
        refused = await post("retry", {"reason": reason})
        assert (refused.status_code, refused.json()["code"]) == (422, "no_reason")
    retried = await post("retry", {"reason": "again"}, **{"idempotency-key": "r"})
    assert retried.json()["task"]["status"] == "created"
    assert retried.json()["verdict"] == "applied"
    repeat = await post("retry", {"reason": "again"}, **{"idempotency-key": "r"})
    assert repeat.json()["verdict"] == "duplicate"
    refused = await post("retry", {"reason": "again"})
    assert (refused.status_code, refused.json()["code"]) == (409, "refused")


async def test_bodies_that_cannot_be_used(gateway: Gateway, person: Person) -> None:
    json_type = {"content-type": "application/json"}

    async def post(content: bytes, headers: dict[str, str] = json_type) -> str:
        answer = await gateway.client.post(
            tasks(person), headers={**person.bearer(), **headers}, content=content
        )
        assert answer.headers["content-type"] == "application/problem+json"
        return f"{answer.status_code} {answer.json()['code']}"

    assert await post(b"{}", {"content-type": "text/plain"}) == "415 unsupported_type"
    assert await post(b"{}", {}) == "415 unsupported_type"
    assert await post(b"") == "400 bad_request"
    assert await post(b"{") == "400 bad_request"
    assert await post(b"\xff") == "400 bad_request"
    assert await post(b"[]") == "400 bad_request"
    assert await post(b"{}") == "422 bad_input"
    assert await post(b'{"input":[]}') == "422 bad_input"
    assert await post(b'{"input":{},"model":7}') == "422 bad_input"
    assert await post(b'{"input":{},"model":"' + b"x" * 600 + b'"}') == "422 bad_input"
    assert await post(b'{"input":{"prompt":"\\u0000"}}') == "400 bad_request"
    assert await post(b'{"input":{},"provider":"nobody"}') == "422 unknown_provider"
    assert await post(b'{"input":{"prompt":"' + b"x" * 300_000 + b'"}}') == "413 too_large"
    key = {**json_type, "idempotency-key": "with space"}
    assert await post(b'{"input":{}}', key) == "400 bad_request"


async def test_other_methods_and_paths_are_problems(gateway: Gateway, person: Person) -> None:
    for method, path, status in (
        ("DELETE", tasks(person), 405),
        ("PUT", "/me", 405),
        ("POST", f"/projects/{person.projects[0]}/events", 405),
        ("GET", "/nothing/here", 404),
        ("GET", "/static/../serve.py", 404),
        ("GET", "/static/%2e%2e/serve.py", 404),
        ("GET", "/static/nothing.js", 404),
    ):
        answer = await gateway.client.request(method, path, headers=person.bearer())
        assert answer.status_code == status, path
        body = answer.json()
        assert set(body) == {"type", "title", "status", "code", "detail", "trace_id"}
        assert body["status"] == status and body["code"] in problems.CODES


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
         "0af7651916cd43dd8448eb211c80319c"),
        ({"x-request-id": "req-12345678"}, "req-12345678"),
        ({"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, None),
        ({"traceparent": "x", "x-request-id": "short"}, None),
        ({"x-request-id": 'bad"id\\with{braces}'}, None),
    ],
)  # fmt: skip
async def test_the_trace_id_is_taken_over_when_it_is_sound(
    gateway: Gateway, person: Person, headers: dict[str, str], expected: str | None
) -> None:
    created = await create(gateway, person, **headers)
    trace_id = created.headers["x-request-id"]
    assert trace_id == expected or (expected is None and uuid.UUID(hex=trace_id))
    rows = await gateway.sql("select trace_id from aivedio.generation_tasks")
    assert rows == [(trace_id,)]


async def test_the_page_is_served_with_a_strict_policy(gateway: Gateway) -> None:
    names = [path.relative_to(pages.FOLDER) for path in pages.FOLDER.rglob("*.js")]
    assert names
    for name in names:
        answer = await gateway.client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        etag = answer.headers["etag"]
        for known, status in (
            (etag, 304),
            (f'"other", W/{etag}', 304),
            (f'"x{etag[1:]}', 200),
            (f"{etag[:-1]}x{etag[-1]}", 200),
            (etag.strip('"'), 200),
            ("*", 304),
        ):
            again = await gateway.client.get(f"/static/{name}", headers={"if-none-match": known})
            assert (again.status_code, bool(again.content)) == (status, status == 200), known


async def test_only_the_kinds_of_files_that_a_page_has_are_served(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "secret.env").write_text("x")
    (tmp_path / "notes").write_text("x")
    assert set(pages.Pages(tmp_path)._files) == {"index.html"}


async def test_many_snapshots_at_once_are_few_questions(gateway: Gateway, person: Person) -> None:
    """A reset storm is a snapshot storm; each asker still sees its own last change."""
    await gateway.create_task(person)
    answers = await asyncio.gather(
        *(gateway.client.get(tasks(person), headers=person.bearer()) for _ in range(40))
    )
    assert {answer.status_code for answer in answers} == {200}
    for _ in range(10):
        made, _ = await asyncio.gather(
            create(gateway, person), gateway.client.get(tasks(person), headers=person.bearer())
        )
        shown = (await gateway.client.get(tasks(person), headers=person.bearer())).json()
        assert made.json()["task"]["id"] in [task["id"] for task in shown["tasks"]]
