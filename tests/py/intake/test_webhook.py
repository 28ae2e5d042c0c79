"""The webhook edge with a real database behind it: what is answered, and what is stored."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import socket
import time
from typing import Any

import orjson
import psycopg
import pytest

from edge import database as door
from edge.intake import failures as failures_module, receive
from edge.intake.failures import Failures
from edge.intake.signatures.judging import base64_secret
from tests.py.intake.conftest import Edge, Inbox, serving
from tests.py.intake.signing import OTHER_SECRET, SECRET, sign
from tests.py.support.waiting import eventually_async

BODY = orjson.dumps({"id": "p1", "status": "processing", "output": None})
STRANGER = "whsec_" + base64.b64encode(b"nobody knows this key ....").decode()


async def test_a_signed_callback_is_stored_and_then_answered(edge: Edge, inbox: Inbox) -> None:
    answer = await edge.deliver(BODY, event_id="msg_a")
    assert (answer.status_code, answer.content) == (204, b"")
    ((key, payload, status, version, digest, headers),) = inbox.rows(
        "dedup_key, payload, process_status, signature_key_version, payload_hash, headers"
    )
    assert (key, status, version) == ("msg_a", "pending", "current")
    assert payload["id"] == "p1"
    assert digest == hashlib.sha256(BODY).digest()
    assert set(headers) == {"webhook-id", "webhook-timestamp"}


async def test_a_repeat_gets_the_same_answer_and_no_row(edge: Edge, inbox: Inbox) -> None:
    first = await edge.deliver(BODY)
    again = await edge.deliver(BODY)
    assert (first.status_code, again.status_code) == (204, 204)
    assert inbox.count() == 1


async def test_twins_at_the_same_instant_are_both_answered(edge: Edge, inbox: Inbox) -> None:
    """W10: in one batch or in two, the unique key chooses one."""
    answers = await asyncio.gather(*(edge.deliver(BODY) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {204}
    assert inbox.count() == 1


async def test_raw_bytes_are_verified(edge: Edge, inbox: Inbox) -> None:
    """W1: unusual JSON is accepted as it is, and any copy of it refused."""
    body = b'{ "status" : "processing",  "id":"caf\\u00e9", "n": 1.0, "s": "\xc3\xa9" }\n'
    assert (await edge.deliver(body, event_id="raw")).status_code == 204
    copy = orjson.dumps(orjson.loads(body))
    answer = await edge.client.post(
        "/callbacks/replicate", content=copy, headers=sign(body, event_id="copy")
    )
    assert (answer.status_code, answer.content) == (401, b"")
    assert inbox.rows("dedup_key") == [("raw",)]


async def test_both_keys_of_a_rotation_are_accepted_and_named(edge: Edge, inbox: Inbox) -> None:
    await edge.deliver(BODY, event_id="new", secret=SECRET)
    await edge.deliver(BODY, event_id="old", secret=OTHER_SECRET)
    assert inbox.rows("dedup_key, signature_key_version") == [
        ("new", "current"),
        ("old", "previous"),
    ]


async def test_every_bad_signature_gets_the_same_empty_401(edge: Edge, inbox: Inbox) -> None:
    good = sign(BODY)
    bad: list[dict[str, str]] = [
        sign(BODY, secret=STRANGER),
        sign(BODY, at=1_000_000_000),
        sign(BODY, at=4_000_000_000),
        {**good, "webhook-signature": "v1,nonsense"},
        {**good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,")},
        {**good, "webhook-timestamp": "soon"},
        {"content-type": "application/json"},
    ]
    for headers in bad:
        answer = await edge.client.post("/callbacks/replicate", content=BODY, headers=headers)
        assert (answer.status_code, answer.content) == (401, b"")
        assert "content-type" not in answer.headers
    assert inbox.count() == 0


async def test_a_recorded_delivery_replayed_later_is_refused(edge: Edge, inbox: Inbox) -> None:
    old = sign(BODY, at=time.time() - 360)
    assert (
        await edge.client.post("/callbacks/replicate", content=BODY, headers=old)
    ).status_code == 401
    recent = sign(BODY, at=time.time() - 240)
    assert (
        await edge.client.post("/callbacks/replicate", content=BODY, headers=recent)
    ).status_code == 204


async def test_no_key_means_no_acceptance(
    database: str, monkeypatch: pytest.MonkeyPatch, inbox: Inbox
) -> None:
    """W7"""
    monkeypatch.delenv("REPLICATE_WEBHOOK_SECRET")
    monkeypatch.setenv("REPLICATE_WEBHOOK_SECRET_PREVIOUS", "")
    async with serving(database) as edge:
        assert (await edge.deliver(BODY)).status_code == 401
    assert inbox.count() == 0


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"not json at all", "not_json"),
        (b"", "not_json"),
        (b"[1, 2]", "not_object"),
        (b'"text"', "not_object"),
        (b'{"id": "p1"}', "missing_field"),
        (b'{"id": "p1", "status": "processing", "x": "\\u0000"}', "not_json"),
        (b'{"id": "p1", "status": "\\ud800"}', "not_json"),
        (b'{"id": "a\0b", "status": "processing"}', "not_json"),
    ],
)
async def test_signed_but_unusable_is_stored_dead_and_acknowledged(
    edge: Edge, inbox: Inbox, body: bytes, problem: str
) -> None:
    assert (await edge.deliver(body)).status_code == 204
    assert inbox.rows("process_status, last_error_code, payload") == [("dead", problem, None)]
    alarms = inbox.session.execute("select kind, subject from aivedio.alarms").fetchall()
    assert alarms == [("callback_unusable", "replicate")]


async def test_signed_bytes_that_are_no_text_are_stored_dead(edge: Edge, inbox: Inbox) -> None:
    body, secret = b'{"id": "\xff"}', base64_secret(SECRET)
    assert secret is not None
    headers = _sign_bytes(body, secret)
    answer = await edge.client.post("/callbacks/replicate", content=body, headers=headers)
    assert answer.status_code == 204
    assert inbox.rows("process_status, last_error_code") == [("dead", "not_utf8")]


async def test_the_bad_row_of_a_batch_does_not_harm_its_neighbours(
    edge: Edge, inbox: Inbox
) -> None:
    """The type jsonb refuses what other parsers accept; each row is judged alone."""
    bad = b'{"id": "p1", "status": "processing", "x": "\\u0000"}'
    answers = await asyncio.gather(
        *(edge.deliver(bad if n % 5 == 0 else BODY, event_id=f"m{n}") for n in range(30))
    )
    assert {answer.status_code for answer in answers} == {204}
    statuses = [status for (status,) in inbox.rows("process_status")]
    assert (statuses.count("dead"), statuses.count("pending")) == (6, 24)


async def test_an_unknown_provider_is_404_as_a_problem(edge: Edge) -> None:
    answer = await edge.client.post("/callbacks/nobody", content=BODY, headers=sign(BODY))
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["code"] == "not_found"
    assert problem["trace_id"]


@pytest.mark.parametrize(
    "path", ["/", "/callbacks", "/callbacks/replicate/a/b", "/metrics", "/ready"]
)
async def test_nothing_else_is_served_on_this_port(edge: Edge, path: str) -> None:
    """A8"""
    answer = await edge.client.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


async def test_only_post_is_taken(edge: Edge) -> None:
    answer = await edge.client.get("/callbacks/replicate")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["code"] == "method_not_allowed"


async def test_a_token_is_stored_as_its_hash_and_never_logged(
    edge: Edge, inbox: Inbox, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    token = "tok_0123456789abcdef"
    assert (await edge.deliver(BODY, f"/callbacks/replicate/{token}")).status_code == 204
    ((stored,),) = inbox.rows("callback_token_hash")
    assert stored == hashlib.sha256(token.encode()).digest()
    captured = capfd.readouterr()
    ours = [
        record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    ]
    said = captured.out + captured.err + "".join(record.getMessage() for record in ours)
    assert token not in said


async def test_the_profiles_acknowledgement_is_what_the_provider_hears(
    edge: Edge, inbox: Inbox
) -> None:
    _override(inbox, {"acknowledge": {"status": 200, "body": {"ok": True}}})

    async def heard() -> bool:
        answer = await edge.deliver(BODY)
        return (answer.status_code, answer.content) == (200, b'{"ok":true}')

    await eventually_async(heard, timeout=5.0)


async def test_a_profile_that_makes_no_sense_leaves_the_last_good_one(
    edge: Edge, inbox: Inbox, capfd: pytest.CaptureFixture[str]
) -> None:
    # Written behind define_provider's back, which would refuse it.
    inbox.session.execute(
        "update aivedio.providers set revision = revision + 1, effective ="
        " jsonb_set(effective, '{webhook,scheme}', '\"rot13\"') where name = 'replicate'"
    )
    inbox.session.execute("""select pg_notify('aivedio_control', '{"kind": "profile"}')""")
    await eventually_async(lambda: "profile not understood" in _both(capfd), timeout=5.0)
    assert (await edge.deliver(BODY)).status_code == 204


async def test_an_unsigned_callback_is_a_hint_and_needs_a_known_token(
    edge: Edge, inbox: Inbox
) -> None:
    """W8"""
    _override(inbox, {"signed": False})

    async def taken() -> bool:
        answer = await edge.client.post(
            "/callbacks/replicate/guessed",
            content=BODY,
            headers={"content-type": "application/json"},
        )
        return answer.status_code == 404

    await eventually_async(taken, timeout=5.0)
    answer = await edge.client.post(
        "/callbacks/replicate", content=BODY, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 404
    assert inbox.count() == 0


async def test_refused_signatures_are_counted_and_reported_once(
    edge: Edge, database: str, inbox: Inbox
) -> None:
    async with door.connect(
        database, role="aivedio_webhook", composites=failures_module.COMPOSITES
    ) as db:
        failures = Failures(db)
        for _ in range(1000):
            failures.add("replicate", "mismatch")
        failures.add("replicate", "too_old")
        failures.add("replicate", "flood")
        await failures.report()
        await failures.report()
    rows = inbox.session.execute(
        "select kind, subject, count, detail from aivedio.alarms"
    ).fetchall()
    assert rows == [
        ("signature_failures", "replicate", 1, {"mismatch": 1000, "too_old": 1}),
    ]


@pytest.mark.parametrize("reason", ["too_large", "no_key"])
async def test_what_loses_every_callback_is_alarmed_at_once(
    database: str, inbox: Inbox, reason: str
) -> None:
    """W20"""
    async with door.connect(
        database, role="aivedio_webhook", composites=failures_module.COMPOSITES
    ) as db:
        failures = Failures(db)
        failures.add("replicate", reason)
        await failures.report()
    alarms = inbox.session.execute("select kind, subject, detail from aivedio.alarms")
    assert alarms.fetchall() == [("signature_failures", "replicate", {reason: 1})]


async def test_a_defect_of_ours_is_told_as_try_again(
    edge: Edge, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(receive, "received", broken)
    answer = await edge.deliver(BODY)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    monkeypatch.undo()
    monkeypatch.setenv("REPLICATE_WEBHOOK_SECRET", SECRET)
    assert (await edge.deliver(BODY)).status_code == 204


async def test_stopping_finishes_what_is_in_flight(database: str, inbox: Inbox) -> None:
    lock = psycopg.connect(database)
    try:
        async with serving(database) as edge:
            lock.execute("lock table aivedio.provider_callback_inbox in exclusive mode")
            waiting = asyncio.create_task(edge.deliver(BODY))
            await eventually_async(lambda: inbox.waits())
            edge.stopping.set()
            await eventually_async(lambda: _refuses(edge.port), timeout=5.0)
            assert not waiting.done()
            lock.rollback()
            assert (await waiting).status_code == 204
    finally:
        lock.close()
    assert inbox.count() == 1


def _sign_bytes(body: bytes, secret: bytes) -> dict[str, str]:
    at = str(int(time.time()))
    digest = hmac.new(secret, b"msg_b." + at.encode() + b"." + body, hashlib.sha256).digest()
    return {
        "content-type": "application/json",
        "webhook-id": "msg_b",
        "webhook-timestamp": at,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


def _override(inbox: Inbox, webhook: dict[str, Any]) -> None:
    inbox.session.execute(
        "select aivedio.override_provider('replicate', %s, 'a test', 'to see it work')",
        [orjson.dumps({"webhook": webhook}).decode()],
    )


def _both(capfd: pytest.CaptureFixture[str]) -> str:
    captured = capfd.readouterr()
    return captured.out + captured.err


def _refuses(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
