"""Who may look and who may act."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx
from httpx import Headers

from edge.cli import operator_link
from edge.console.actions import ACTIONS
from tests.py.conftest import Connect
from tests.py.console.running import WHO, Console, bearer, running, token
from tests.py.console.seed import Seed
from tests.py.console.test_looks import LOOKS
from tests.py.support.sessions import rows, value

NOT_ME = {"authorization": "Bearer no.token.at-all"}


ASKERS: list[tuple[dict[str, str], int]] = [
    ({}, 401),
    (NOT_ME, 401),
    ({"authorization": "Basic b3BzOm9wcw=="}, 401),
    ({"authorization": "Bearer"}, 401),
    ({"authorization": "Bearer " + "x" * 9000}, 401),
    (bearer(exp=int(time.time()) - 60), 401),
    (bearer(secret="another secret that is long enough to be one"), 401),
    (bearer(who=""), 401),
    (bearer(who="two\nlines"), 401),
    (bearer(who="x" * 301), 401),
    (bearer(None), 403),
    (bearer("rule"), 403),
    (bearer(None, operator=True), 403),
    (bearer("read"), 200),
    (bearer("act"), 200),
]


async def test_who_looks(console: Console, seed: Seed) -> None:
    for headers, status in ASKERS:
        for path in (*LOOKS, "tasks?q=x", f"tasks/{seed.over}", "letters/media"):
            answer = await console.client.get(f"/api/{path}", headers=headers)
            assert answer.status_code == status, (path, headers)
            if status == 401:
                assert answer.headers["www-authenticate"] == "Bearer"


async def test_who_acts(console: Console, connect: Connect, seed: Seed) -> None:
    for name in ACTIONS:
        for headers, status in (
            ({}, 401),
            (NOT_ME, 401),
            (bearer(None), 403),
            (bearer("read"), 403),
        ):
            answer = await console.client.post(
                f"/api/actions/{name}", headers=headers, json={"reason": "why not"}
            )
            assert answer.status_code == status, name
        allowed = await console.client.post(f"/api/actions/{name}", headers=bearer(), json={})
        assert allowed.status_code == 422, f"{name} asks for what it needs"
    acted = value(connect(), "select count(*) from aivedio.operator_actions where actor = %s", WHO)
    assert acted == 0


PAGES: list[tuple[dict[str, str], int]] = [
    ({"origin": "{url}"}, 409),
    ({"sec-fetch-site": "same-origin"}, 409),
    ({}, 403),
    ({"origin": "https://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"origin": "http://127.0.0.1:1"}, 403),
]


async def test_a_cookie_acts_for_our_own_page_only(console: Console) -> None:
    for more, status in PAGES:
        headers = {name: text.format(url=console.url) for name, text in more.items()}
        answer = await console.client.post(
            "/api/actions/requeue_outbox",
            headers={**headers, "cookie": f"aivedio_operator={token()}"},
            json={"message": 1, "reason": "a test"},
        )
        assert answer.status_code == status, more
        looks = await console.client.get(
            "/api/me", headers={**headers, "cookie": f"aivedio_operator={token('read')}"}
        )
        assert looks.status_code == 200


async def test_who_did_it_is_never_what_was_sent(console: Console, seed: Seed) -> None:
    for name in ("who", "p_who", "actor"):
        lie: dict[str, Any] = {name: "somebody else"}
        answer = await console.act("requeue_outbox", message=seed.message, reason="a test", **lie)
        assert answer.status_code == 422
    answer = await console.act("requeue_outbox", message=seed.message, reason="a test")
    assert answer.json()["who"] == WHO
    done = (await console.look("actions"))["actions"][0]
    assert (done["actor"], done["action"], done["reason"]) == (WHO, "requeue_outbox", "a test")


async def test_a_link_logs_in_once(console: Console, database: str, connect: Connect) -> None:
    assert await asyncio.to_thread(operator_link.show, database, console.url, "act", WHO) == 0
    link = await _link(database, console.url, "read")
    entered = await console.client.get(link)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and "secure" not in cookie
    assert (await console.client.get("/api/me")).json()["role"] == "read"
    assert (await console.client.get("/api/me")).json()["who"] == WHO
    console.client.cookies.clear()
    again = await console.client.get(link)
    assert "set-cookie" not in again.headers
    assert (await console.client.get("/api/me")).status_code == 401
    for nonsense in ("", "x", "x" * 300, "é" * 20):
        answer = await console.client.get("/login", params={"token": nonsense})
        assert "set-cookie" not in answer.headers
    assert "operator-link" not in str(rows(connect(), "select claims from aivedio.one_time_tokens"))


async def _link(database: str, url: str, role: str) -> str:
    from edge import database as door

    async with door.connect(database, role="aivedio_operator", max_size=1) as db:
        return await operator_link.make(db, url, role, WHO)


async def test_a_link_of_the_gateway_makes_no_operator(console: Console, connect: Connect) -> None:
    secret = "a token of the gateway, or of an application"
    session = connect(autocommit=True)
    rows(
        session,
        "select aivedio.issue_token('login', %s, %s, null, %s, 's1', '{\"projects\": []}')",
        hashlib.sha256(secret.encode()).digest(),
        uuid.uuid4(),
        uuid.uuid4(),
    )
    answer = await console.client.get("/login", params={"token": secret})
    assert answer.status_code == 303
    assert "set-cookie" not in answer.headers


async def test_the_cookie_is_secure_where_the_page_is(
    database: str, free_port: Callable[[], int]
) -> None:
    port = free_port()
    async with running(
        database, port, public_url="https://operators.example.net", secure_cookie=True
    ) as console:
        entered = await console.client.get(await _link(database, console.url, "act"))
        assert "secure" in entered.headers["set-cookie"].lower()
        cookie = entered.headers["set-cookie"].partition(";")[0]
        for origin, status in (("https://operators.example.net", 409), (console.url, 403)):
            answer = await console.client.post(
                "/api/actions/requeue_outbox",
                headers=Headers({"cookie": cookie, "origin": origin}),
                json={"message": 1, "reason": "a test"},
            )
            assert answer.status_code == status


async def test_a_session_ends_when_it_is_revoked(console: Console, connect: Connect) -> None:
    headers = bearer(sid="stolen")
    assert (await console.client.get("/api/me", headers=headers)).status_code == 200
    session = connect(autocommit=True)
    rows(session, "select aivedio.revoke_access('session', 'stolen', 'boss', 'a stolen laptop')")
    assert (await console.client.get("/api/me", headers=headers)).status_code == 401
    assert (await console.client.get("/api/me", headers=bearer())).status_code == 200
    rows(session, "select aivedio.revoke_access('user', %s, 'boss', 'has left')", WHO)
    assert (await console.client.get("/api/me", headers=bearer())).status_code == 401


async def test_logins_are_bounded(console: Console) -> None:
    statuses = {
        (await console.client.get("/login", params={"token": "x" * 40})).status_code
        for _ in range(40)
    }
    assert statuses == {303, 429}


async def test_a_head_that_is_too_large_is_refused(console: Console) -> None:
    with_much = {"x-much": "x" * 40_000}
    try:
        answer = await console.client.get("/api/me", headers=with_much)
    except httpx.TransportError:
        return  # the refusal was lost with the connection
    assert answer.status_code == 431
