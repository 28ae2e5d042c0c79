"""The webhook edge as providers of every habit meet it: hints, answers, challenges, event ids."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import orjson
import psycopg
import pytest

from edge.buckets import Rate
from edge.intake.flood import Flood
from tests.py.intake.conftest import Edge, Inbox, serving
from tests.py.intake.providers import attempt, define, is_due
from tests.py.intake.server import answer, serving as publishing
from tests.py.intake.signers import AUDIENCE, JWKS, PATH, SECRET, SENDERS
from tests.py.support.waiting import eventually_async

BODY = orjson.dumps({"id": "job-1", "state": "run"})
JSON = {"content-type": "application/json"}
KEY = [{"ref": "env:LUMEN_KEY", "version": "current"}]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMEN_KEY", SECRET.decode())
    monkeypatch.setenv("LUMEN_AUDIENCE", AUDIENCE)


@pytest.fixture
async def lumen(database: str, inbox: Inbox) -> AsyncIterator[Edge]:
    """An edge that knows the provider lumen, as a test has defined it last."""
    define(inbox.session, {"signed": False})
    async with serving(database, callback_url="http://127.0.0.1:9") as running:
        yield running


async def post(
    edge: Edge, body: bytes, token: str | None = None, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    path = "/callbacks/lumen" + (f"/{token}" if token else "")
    return await edge.client.post(path, content=body, headers={**JSON, **(headers or {})})


async def changed(edge: Edge, inbox: Inbox, webhook: dict[str, Any], status: int = 404) -> None:
    """Define lumen anew and wait until the edge knows; `status` is what a stranger hears then."""
    define(inbox.session, {"max_body": 2048, **webhook})

    async def known() -> bool:
        large = await post(edge, b" " * 2049)
        return large.status_code == 413 and (await post(edge, BODY)).status_code == status

    await eventually_async(known, timeout=45.0)


async def test_an_unsigned_callback_makes_its_attempts_poll_due(lumen: Edge, inbox: Inbox) -> None:
    """W8"""
    waiting = attempt(inbox.session, "token")
    heard = await post(lumen, BODY, "token")
    assert (heard.status_code, heard.content) == (204, b"")
    assert inbox.rows("signed, payload, signature_key_version") == [(False, None, None)]
    assert is_due(inbox.session, waiting)
    assert (await post(lumen, BODY, "another")).status_code == 404


async def test_any_number_of_hints_is_one_row_and_few_writes(lumen: Edge, inbox: Inbox) -> None:
    attempt(inbox.session, "token")
    inbox.session.execute(
        "update aivedio.settings set value = '3600' where name = 'hint_interval_s'"
    )

    def write() -> tuple[Any, ...]:
        inbox.session.execute("select aivedio.process_inbox('{0,1,2,3,4,5,6,7}')")
        (row,) = inbox.rows("id, xmin::text")
        return row

    assert (await post(lumen, BODY, "token")).status_code == 204
    write()
    # The second asks for a poll after the first's; whatever comes until then says no more.
    assert (await post(lumen, BODY, "token")).status_code == 204
    second = write()
    for n in range(20):
        assert (await post(lumen, b'{"n": %d}' % n, "token")).status_code == 204
        assert write() == second


async def test_a_callback_whose_body_is_not_signed_is_a_hint(lumen: Edge, inbox: Inbox) -> None:
    await changed(lumen, inbox, {"scheme": "vidu-hmac", "secrets": KEY}, 401)
    waiting = attempt(inbox.session, "token")
    # Signed for another address than it comes to, and not at all.
    headers = SENDERS["vidu-hmac"].sign(BODY, int(time.time()))
    assert (await post(lumen, BODY, "token", headers)).status_code == 401
    assert (await post(lumen, BODY, "token")).status_code == 401
    assert inbox.count() == 0

    url = PATH.replace("/p/", "/lumen/")
    signed = SENDERS["vidu-hmac"].sign(BODY, int(time.time()), path=url)
    lie = orjson.dumps({"id": "job-1", "state": "failed"})
    assert (
        await lumen.client.post(url, content=lie, headers={**JSON, **signed})
    ).status_code == 204
    assert inbox.rows("signed, payload, signature_key_version") == [(False, None, "current")]
    assert is_due(inbox.session, waiting)


async def test_a_path_that_a_proxy_shortens_is_signed_as_it_was_called(
    database: str, inbox: Inbox
) -> None:
    define(inbox.session, {"scheme": "vidu-hmac", "secrets": KEY})
    attempt(inbox.session, "token")
    async with serving(database, callback_url="http://127.0.0.1:9/hooks/") as edge:
        path = PATH.replace("/p/", "/lumen/")
        signed = SENDERS["vidu-hmac"].sign(BODY, int(time.time()), path=f"/hooks{path}")
        heard = await edge.client.post(path, content=BODY, headers={**JSON, **signed})
        assert heard.status_code == 204


async def test_a_token_of_googles_is_a_hint_whatever_the_body_says(
    lumen: Edge, inbox: Inbox
) -> None:
    async with publishing(answer(orjson.dumps(JWKS))) as publisher:
        webhook = {
            "scheme": "gemini-dynamic-jwt",
            "jwks_url": f"{publisher.url}/jwks.json",
            "audience": "env:LUMEN_AUDIENCE",
        }
        await changed(lumen, inbox, webhook, 401)
        waiting = attempt(inbox.session, "token")
        headers = SENDERS["gemini-dynamic-jwt"].sign(BODY, int(time.time()))
        assert (await post(lumen, BODY, None, headers)).status_code == 404
        assert (await post(lumen, BODY, "token", headers)).status_code == 204
    assert inbox.rows("signed, payload, signature_key_version") == [(False, None, "rs")]
    assert is_due(inbox.session, waiting)


async def test_a_thin_callback_only_says_that_there_is_news(lumen: Edge, inbox: Inbox) -> None:
    webhook = {
        "scheme": "standard-webhooks-v1",
        "secret_format": "raw",
        "secrets": KEY,
        "thin": True,
        "event_id_header": "webhook-id",
    }
    await changed(lumen, inbox, webhook, 401)
    waiting = attempt(inbox.session, "token")
    headers = SENDERS["standard-webhooks-v1"].sign(BODY, int(time.time()))
    assert (await post(lumen, BODY, None, headers)).status_code == 204
    assert inbox.rows("signed, dedup_key") == [(True, "msg_1")]
    assert is_due(inbox.session, waiting)
    assert inbox.rows("verdict") == [("hint",)]


async def test_published_keys_verify_and_are_named(lumen: Edge, inbox: Inbox) -> None:
    async with publishing(answer(orjson.dumps(JWKS))) as publisher:
        url = f"{publisher.url}/jwks.json"
        await changed(lumen, inbox, {"scheme": "fal-ed25519", "jwks_url": url}, 401)
        headers = SENDERS["fal-ed25519"].sign(BODY, int(time.time()))
        for _ in range(3):
            assert (await post(lumen, BODY, None, headers)).status_code == 204
        assert len(publisher.requests) == 1
    assert inbox.rows("signed, signature_key_version") == [(True, "ed")]


async def test_an_id_that_is_not_signed_makes_no_second_event(lumen: Edge, inbox: Inbox) -> None:
    """HeyGen signs the body alone: with a new id and time the same delivery looks new."""
    keep = ["heygen-event-id", "heygen-timestamp"]
    webhook = {"scheme": "heygen-hex-body", "secrets": KEY, "keep_headers": keep}
    await changed(lumen, inbox, webhook, 401)
    for n in range(3):
        headers = {
            **SENDERS["heygen-hex-body"].sign(BODY, 0),
            "heygen-event-id": f"e{n}",
            "heygen-timestamp": str(n),
        }
        assert (await post(lumen, BODY, None, headers)).status_code == 204
    assert inbox.rows("provider_event_id, headers") == [
        (None, {"heygen-event-id": "e0", "heygen-timestamp": "0"})
    ]


@pytest.mark.parametrize(
    ("acknowledge", "status", "body", "kind"),
    [
        (None, 204, b"", None),
        ({"status": 200}, 200, b"", None),
        ({"status": 200, "body": "ok"}, 200, b"ok", "text/plain; charset=utf-8"),
        ({"status": 200, "body": {"code": 0}}, 200, b'{"code":0}', "application/json"),
    ],
)
async def test_a_provider_hears_what_its_profile_says(
    database: str,
    inbox: Inbox,
    acknowledge: dict[str, Any] | None,
    status: int,
    body: bytes,
    kind: str | None,
) -> None:
    define(inbox.session, {"signed": False, "acknowledge": acknowledge})
    attempt(inbox.session, "token")
    async with serving(database) as edge:
        for _ in range(2):
            heard = await post(edge, BODY, "token")
            assert (heard.status_code, heard.content) == (status, body)
            assert heard.headers.get("content-type") == kind


class TestChallenge:
    """The one answer without a row."""

    @pytest.fixture(autouse=True)
    def echoing(self, inbox: Inbox, key: None) -> None:
        webhook = {"signed": False, "challenge": "challenge", "acknowledge": {"status": 200}}
        define(inbox.session, webhook)
        attempt(inbox.session, "token")

    async def test_a_word_is_echoed_to_whoever_knows_a_token(
        self, database: str, inbox: Inbox
    ) -> None:
        async with serving(database) as edge:
            heard = await post(edge, b' {"challenge":"w\\u00f6rd"} ', "token")
            assert (heard.status_code, heard.json()) == (200, {"challenge": "w\u00f6rd"})
            assert heard.headers["content-type"] == "application/json"
            for token in ("guessed", None):
                refused = await post(edge, b'{"challenge":"word"}', token)
                assert refused.status_code == 404
                assert b"word" not in refused.content
        assert inbox.count() == 0

    @pytest.mark.parametrize(
        "body",
        [
            b'{"challenge":"word","task_id":"1"}',
            b'{"challenge":7}',
            b'{"challenge":""}',
            b'{"challenge":null}',
            b'{"challenge":["word"]}',
            b'["challenge"]',
            b'{"challenge":"' + b"w" * 257 + b'"}',
            b'{"challenge":"word"}' + b" " * 1024,
            b"not JSON",
        ],
    )
    async def test_anything_else_is_a_callback(
        self, database: str, inbox: Inbox, body: bytes
    ) -> None:
        async with serving(database) as edge:
            heard = await post(edge, body, "token")
        assert (heard.status_code, heard.content) == (200, b"")
        assert inbox.count() == 1

    async def test_words_are_echoed_slowly(self, database: str, inbox: Inbox) -> None:
        flood = Flood(challenges=Rate(0.001, 2))
        async with serving(database, flood=flood) as edge:
            asked = [await post(edge, b'{"challenge":"w"}', "token") for _ in range(3)]
            assert [heard.status_code for heard in asked] == [200, 200, 429]
            assert (await post(edge, BODY, "token")).status_code == 200

    async def test_nothing_is_echoed_where_the_profile_does_not_say_so(
        self, database: str, inbox: Inbox
    ) -> None:
        define(inbox.session, {"signed": False})
        async with serving(database) as edge:
            heard = await post(edge, b'{"challenge":"word"}', "token")
        assert (heard.status_code, heard.content) == (204, b"")
        assert inbox.count() == 1

    async def test_guessing_tokens_shuts_the_guesser_out(self, database: str, inbox: Inbox) -> None:
        async with serving(database, flood=Flood(refused=Rate(0.01, 3))) as edge:
            asked = [await post(edge, b'{"challenge":"w"}', f"guess{n}") for n in range(2)]
            asked += [await post(edge, BODY, "guess"), await post(edge, BODY, "token")]
        assert [heard.status_code for heard in asked] == [404, 404, 404, 429]


async def test_a_database_that_is_away_cannot_vouch_for_a_token(
    database: str, inbox: Inbox
) -> None:
    define(inbox.session, {"signed": False, "challenge": "challenge"})
    async with serving(database) as edge:
        with psycopg.connect(database) as locker:
            locker.execute("lock table aivedio.task_attempts")
            heard = await post(edge, b'{"challenge":"word"}', "token")
    assert heard.status_code == 503
