"""What the webhook edge does not take in, and that it says so without reading on."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import httpx
import orjson
import pytest

from edge.buckets import Rate
from edge.intake import http_limits, receive, webhook
from edge.intake.flood import Flood
from tests.py.intake.conftest import Edge, Inbox, serving
from tests.py.intake.signing import sign
from tests.py.support.waiting import eventually_async

BODY = orjson.dumps({"id": "p1", "status": "processing"})
LIMIT = 262_144


async def raw(edge: Edge, *pieces: bytes, end: bool = False) -> bytes:
    """Send bytes and return everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if end:
            writer.write_eof()
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_the_largest_body_is_taken(edge: Edge, inbox: Inbox) -> None:
    body = BODY[:-1] + b" " * (LIMIT - len(BODY)) + b"}"
    assert (await edge.deliver(body)).status_code == 204
    assert inbox.count() == 1


async def test_an_announced_oversize_is_refused_unread(edge: Edge, inbox: Inbox) -> None:
    """W20: an explicit 413."""
    head = (
        b"POST /callbacks/replicate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: 8000000\r\n\r\n"
    )
    answer = await raw(edge, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code":"too_large"' in answer
    assert inbox.count() == 0


async def test_an_unannounced_oversize_is_refused_while_it_comes(edge: Edge, inbox: Inbox) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * 65_536

    try:
        answer = await edge.client.post(
            "/callbacks/replicate", content=endless(), headers=sign(BODY)
        )
        assert answer.status_code == 413
    except (httpx.WriteError, httpx.ReadError):
        pass  # The refusal was there, but the sender was still sending when the connection ended.
    assert inbox.count() == 0


async def test_an_oversize_with_a_known_token_makes_the_poll_due(edge: Edge, inbox: Inbox) -> None:
    """W20: nothing of it is read, but its attempt is asked about."""
    token = "a-token-that-we-gave-out"
    _, attempt = running_attempt(inbox, token)
    head = (
        f"POST /callbacks/replicate/{token} HTTP/1.1\r\nhost: x\r\n"
        "content-type: application/json\r\ncontent-length: 8000000\r\n\r\n"
    )
    assert (await raw(edge, head.encode())).startswith(b"HTTP/1.1 413")
    assert inbox.rows("signed, callback_token_hash") == [(False, _hash(token))]


async def test_a_body_that_does_not_arrive_is_given_up(
    edge: Edge, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "BODY_SECONDS", 0.3)
    head = (
        b"POST /callbacks/replicate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: 100\r\n\r\n"
    )
    answer = await raw(edge, head, b'{"id":')
    assert answer.startswith(b"HTTP/1.1 408")
    assert inbox.count() == 0


async def test_a_slow_body_does_not_slow_others(edge: Edge, inbox: Inbox) -> None:
    """W28"""
    head = (
        b"POST /callbacks/replicate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: 100\r\n\r\n"
    )
    slow = [asyncio.create_task(raw(edge, head)) for _ in range(50)]
    answers = await asyncio.gather(*(edge.deliver(BODY, event_id=f"m{n}") for n in range(20)))
    assert {answer.status_code for answer in answers} == {204}
    assert not any(task.done() for task in slow)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_a_head_that_does_not_arrive_is_given_up(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits.CallbackProtocol, "head_within_s", 0.3)
    async with serving(database) as edge:
        assert await raw(edge) == b""
        assert await raw(edge, b"POST /callbacks/replicate HTTP/1.1\r\nhost: x\r\n") == b""


@pytest.mark.parametrize(
    "head",
    [
        b"".join(b"x-%d: 1\r\n" % n for n in range(200)) + b"\r\n",
        b"x-long: " + b"a" * 40_000 + b"\r\n\r\n",
        b"x-endless: " + b"a" * 200_000,
    ],
    ids=["many", "large", "endless"],
)
async def test_too_many_or_too_large_headers_are_refused(edge: Edge, head: bytes) -> None:
    answer = await raw(edge, b"POST /callbacks/replicate HTTP/1.1\r\nhost: x\r\n" + head)
    assert answer.startswith(b"HTTP/1.1 431") or answer == b""
    assert (await edge.deliver(BODY)).status_code == 204


async def test_too_many_at_once_are_refused_and_the_rest_is_served(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "MAX_IN_FLIGHT", 3)
    head = (
        b"POST /callbacks/replicate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: 100\r\n\r\n"
    )
    async with serving(database) as edge:
        slow = [asyncio.create_task(raw(edge, head)) for _ in range(3)]

        async def refused() -> bool:
            return (await edge.deliver(BODY)).status_code == 503

        await eventually_async(refused)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

        async def served() -> bool:
            return (await edge.deliver(BODY)).status_code == 204

        await eventually_async(served)


async def test_too_many_connections_are_refused(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits.CallbackProtocol, "connections_at_most", 3)
    async with serving(database) as edge:
        idle = [await asyncio.open_connection("127.0.0.1", edge.port) for _ in range(3)]
        assert (await raw(edge)).startswith(b"HTTP/1.1 503")
        for _, writer in idle:
            writer.close()

        async def served() -> bool:
            try:
                return (await edge.deliver(BODY)).status_code == 204
            except httpx.TransportError:
                return False

        await eventually_async(served)


async def test_a_slash_too_many_is_not_redirected(edge: Edge) -> None:
    answer = await edge.deliver(BODY, "/callbacks/replicate/")
    assert answer.status_code == 404


async def test_what_is_not_http_is_refused_as_a_problem(edge: Edge) -> None:
    answer = await raw(edge, b"\x16\x03\x01 hello, TLS?\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer


async def test_a_connection_serves_many_callbacks(edge: Edge, inbox: Inbox) -> None:
    async with httpx.AsyncClient(
        base_url=edge.url, limits=httpx.Limits(max_connections=1), trust_env=False
    ) as client:
        for n in range(10):
            answer = await client.post(
                "/callbacks/replicate", content=BODY, headers=sign(BODY, event_id=f"k{n}")
            )
            assert answer.status_code == 204
    assert inbox.count() == 10


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json; charset=utf-8"}, 204),
        ({"content-type": "APPLICATION/JSON"}, 204),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": ""}, 415),
        ({"content-encoding": "gzip"}, 415),
    ],
)
async def test_only_the_profiles_types_are_taken(
    edge: Edge, headers: dict[str, str], status: int
) -> None:
    answer = await edge.client.post(
        "/callbacks/replicate", content=BODY, headers={**sign(BODY), **headers}
    )
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("proxies", "forwarded", "status"),
    [
        ([], {}, 403),
        ([], {"x-forwarded-proto": "https"}, 403),
        (["10.0.0.0/8"], {"x-forwarded-proto": "https"}, 403),
        (["127.0.0.0/8"], {"x-forwarded-proto": "https"}, 204),
        (["127.0.0.0/8"], {"x-forwarded-proto": "http"}, 403),
        (["127.0.0.0/8"], {"x-forwarded-proto": "https, http"}, 403),
        (["127.0.0.0/8"], {}, 403),
    ],
)
async def test_plain_http_is_refused_unless_a_trusted_proxy_vouches(
    database: str, proxies: list[str], forwarded: dict[str, str], status: int
) -> None:
    trusted = [ip_network(proxy) for proxy in proxies]
    async with serving(database, local=False, trusted_proxies=trusted) as edge:
        answer = await edge.client.post(
            "/callbacks/replicate", content=BODY, headers={**sign(BODY), **forwarded}
        )
    assert answer.status_code == status


async def test_a_flood_is_told_to_wait(database: str, inbox: Inbox) -> None:
    flood = Flood(by_source=Rate(0.5, 3))
    async with serving(database, flood=flood) as edge:
        statuses = [(await edge.deliver(BODY, event_id=f"f{n}")).status_code for n in range(4)]
        answer = await edge.deliver(BODY)
    assert statuses == [204, 204, 204, 429]
    assert answer.json()["code"] == "too_many_requests"
    assert 1 <= int(answer.headers["retry-after"]) <= 2
    assert inbox.count() == 3


async def test_guessing_signatures_is_slowed_down_and_others_are_not(database: str) -> None:
    flood = Flood(refused=Rate(0.1, 5))
    trusted = [ip_network("127.0.0.0/8")]
    async with serving(database, local=False, flood=flood, trusted_proxies=trusted) as edge:

        async def call(source: str, signed: bool) -> int:
            headers: dict[str, Any] = {
                "x-forwarded-proto": "https",
                "x-forwarded-for": source,
                **(sign(BODY) if signed else {"content-type": "application/json"}),
            }
            answer = await edge.client.post("/callbacks/replicate", content=BODY, headers=headers)
            return answer.status_code

        guesses = [await call("203.0.113.9", False) for _ in range(8)]
        assert guesses == [401] * 5 + [429] * 3
        assert await call("198.51.100.7", True) == 204


async def test_profiles_are_reloaded_without_a_bell(
    database: str, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "RELOAD_EVERY", 0.3)
    async with serving(database) as edge:
        inbox.session.execute(
            "update aivedio.providers set revision = revision + 1, effective ="
            " jsonb_set(effective, '{webhook,max_body}', '10') where name = 'replicate'"
        )

        async def refused() -> bool:
            return (await edge.deliver(BODY)).status_code == 413

        await eventually_async(refused)


def running_attempt(inbox: Inbox, token: str) -> tuple[Any, Any]:
    """Make a task whose attempt's callbacks carry `token`; return both ids."""
    row = inbox.session.execute(
        "select task_id, attempt_id from aivedio.create_task(gen_random_uuid(), gen_random_uuid(),"
        " gen_random_uuid(), 'replicate', 'm', '{}')"
    ).fetchone()
    assert row is not None
    inbox.session.execute(
        "update aivedio.task_attempts set callback_token_hash = %s where task_id = %s",
        [_hash(token), row[0]],
    )
    return row[0], row[1]


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
