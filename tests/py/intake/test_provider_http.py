"""Requests to providers over a real socket: every answer, and every lack of one, has its name."""

from __future__ import annotations

import asyncio
import gzip
import time
import uuid
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from edge.intake.outcomes import Outcome
from edge.intake.provider_http import ProviderHttp, ProviderRequest
from edge.intake.secrets import Secrets
from tests.py.intake.server import Behave, Request, Server, Writer, answer, serving
from tests.py.support.ports import free_port

REQUEST = ProviderRequest(
    attempt_id=uuid.UUID(int=1),
    lease_token=1,
    provider="replicate",
    credential="default",
    method="GET",
    url="",
    headers=None,
    body=None,
    auth=None,
    timeout_s=2.0,
    max_bytes=10_000,
    local=True,
    trace_id=None,
)


@asynccontextmanager
async def provider(
    behave: Behave, *, reuse: bool = True, **settings: Any
) -> AsyncIterator[tuple[Server, ProviderHttp]]:
    async with (
        serving(behave) as server,
        ProviderHttp(Secrets({"KEY": "s3cret"}), reuse=reuse, **settings) as http,
    ):
        yield server, http


async def send(behave: Behave, **request: Any) -> Outcome:
    async with provider(behave) as (server, http):
        return await http.send(replace(REQUEST, **{"url": server.url, **request}), "poll")


async def test_json_comes_as_it_is() -> None:
    outcome = await send(answer(b'{"status": "succeeded", "n": 1.0}'))
    assert outcome == {
        "kind": "response",
        "http_status": 200,
        "body": {"status": "succeeded", "n": 1.0},
    }


@pytest.mark.parametrize("body", [b"", b"  \n", b"<html>", b'{"id": ', b"\xff\xfe", b"NaN"])
async def test_a_success_without_json_is_malformed(body: bytes) -> None:
    """P4"""
    outcome = await send(answer(body))
    assert (outcome["kind"], outcome["http_status"]) == ("malformed", 200)
    assert len(outcome["sample"]) <= 500


async def test_a_sample_is_short_and_holds_no_zero_characters() -> None:
    outcome = await send(answer(b"a\0" * 3000))
    assert len(outcome["sample"]) == 500
    assert "\0" not in outcome["sample"]


@pytest.mark.parametrize("status", [202, 204])
async def test_an_answer_that_may_be_empty_is_an_answer(status: int) -> None:
    outcome = await send(answer(b"", status))
    assert outcome == {"kind": "response", "http_status": status, "body": None}


@pytest.mark.parametrize("status", [400, 401, 404, 422, 500, 502])
async def test_an_error_keeps_its_status_whatever_its_body(status: int) -> None:
    """P2, P5: the provider's own message is kept."""
    assert (await send(answer(b'{"detail": "no"}', status)))["body"] == {"detail": "no"}
    assert (await send(answer(b"<h1>Bad Gateway</h1>", status))) == {
        "kind": "response",
        "http_status": status,
        "body": "<h1>Bad Gateway</h1>",
    }


@pytest.mark.parametrize(
    ("value", "expected"), [("7", 7.0), ("1.5", 1.5), ("0", 0.0), ("soon", None), ("-3", None)]
)
async def test_retry_after_in_seconds(value: str, expected: float | None) -> None:
    outcome = await send(answer(b"{}", 429, {"retry-after": value}))
    assert outcome.get("retry_after_s") == expected


async def test_retry_after_as_a_date() -> None:
    date = {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}
    async with provider(answer(b"{}", 503, date), clock=lambda: 946684789.0) as (server, http):
        outcome = await http.send(replace(REQUEST, url=server.url), "poll")
    assert outcome["retry_after_s"] == 10.0


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    """W19's other side: no request goes where the profile did not say."""
    async with serving(answer()) as elsewhere:
        outcome = await send(answer(b"", 302, {"location": elsewhere.url}))
        assert outcome["http_status"] == 302
        assert elsewhere.requests == []


async def test_an_announced_oversize_is_not_read() -> None:
    async def behave(_: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 999999999\r\n\r\n{")

    assert await send(behave) == {"kind": "too_large", "http_status": 200}


async def test_an_endless_answer_is_cut() -> None:
    async def behave(_: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
            await writer.drain()

    assert await send(behave) == {"kind": "too_large", "http_status": 200}


async def test_packed_answers_are_not_asked_for_but_understood() -> None:
    packed = gzip.compress(b'{"status": "running"}')
    async with provider(answer(packed, 200, {"content-encoding": "gzip"})) as (server, http):
        outcome = await http.send(replace(REQUEST, url=server.url), "poll")
        assert server.requests[0].headers["accept-encoding"] == "identity"
    assert outcome["body"] == {"status": "running"}


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
async def test_a_packed_bomb_is_cut(pack: Any) -> None:
    bomb = pack(b" " * 300_000_000)
    began = time.process_time()
    outcome = await send(
        answer(bomb, 200, {"content-encoding": "gzip" if pack is gzip.compress else "deflate"}),
        max_bytes=1_000_000,
    )
    assert outcome == {"kind": "too_large", "http_status": 200}
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("encoding", ["br", "gzip"])
async def test_what_cannot_be_unpacked_is_malformed(encoding: str) -> None:
    outcome = await send(answer(b"garbage", 200, {"content-encoding": encoding}))
    assert outcome["kind"] == "malformed"


async def test_nobody_there_means_not_sent() -> None:
    async with ProviderHttp(Secrets({}), reuse=True) as http:
        request = replace(REQUEST, url=f"http://127.0.0.1:{free_port()}/")
        assert await http.send(request, "submit") == {"kind": "not_sent", "error": "ConnectError"}


async def test_no_answer_is_a_timeout() -> None:
    async def behave(_: Request, writer: Writer) -> None:
        await asyncio.sleep(60)

    assert await send(behave, timeout_s=0.3) == {"kind": "timeout", "error": "ReadTimeout"}


async def test_a_drip_ends_as_a_timeout() -> None:
    async def behave(_: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 5000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    began = time.monotonic()
    outcome = await send(behave, timeout_s=0.5)
    assert outcome == {"kind": "timeout", "error": "ReadTimeout"}
    assert time.monotonic() - began < 3


async def test_a_drip_of_the_head_ends_too() -> None:
    async def behave(_: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 X\r\n")
        for n in range(10_000):
            writer.write(b"x-%d: 1\r\n" % n)
            await writer.drain()
            await asyncio.sleep(0.05)

    began = time.monotonic()
    outcome = await send(behave, timeout_s=0.5)
    assert outcome["kind"] == "timeout"
    assert time.monotonic() - began < 5


async def test_a_broken_connection_after_sending_is_a_network_failure() -> None:
    """The provider may have seen the request: for a submission that is unknown, not unsent."""

    async def behave(_: Request, writer: Writer) -> None:
        writer.transport.abort()

    outcome = await send(behave, method="POST", body={"a": 1})
    assert outcome["kind"] == "network"


async def test_an_answer_that_breaks_off_is_a_network_failure() -> None:
    async def behave(_: Request, writer: Writer) -> None:
        writer.write(b'HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{"id":')
        await writer.drain()
        writer.close()

    assert (await send(behave))["kind"] == "network"


async def test_the_credential_is_added_as_the_profile_says() -> None:
    async with provider(answer()) as (server, http):
        request = replace(REQUEST, url=server.url)
        bearer = {"kind": "bearer", "secret": "env:KEY"}
        await http.send(replace(request, auth=bearer), "poll")
        header = {"kind": "header", "header": "X-Key", "prefix": "Key ", "secret": "env:KEY"}
        await http.send(replace(request, auth=header), "poll")
        await http.send(replace(request, auth={"kind": "none"}), "poll")
        first, second, third = server.requests
    assert first.headers["authorization"] == "Bearer s3cret"
    assert second.headers["x-key"] == "Key s3cret"
    assert "authorization" not in third.headers


async def test_without_its_credential_a_request_is_not_sent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with provider(answer()) as (server, http):
        auth = {"kind": "bearer", "secret": "env:MISSING"}
        outcome = await http.send(replace(REQUEST, url=server.url, auth=auth), "poll")
        assert server.requests == []
    assert outcome == {"kind": "not_sent", "error": "NoSecret"}


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"auth": {"kind": "bearer", "secret": "env:PASTED"}}, "UnicodeEncodeError"),
        ({"headers": {"x-model": "w\u00e4n"}}, "UnicodeEncodeError"),
        ({"body": {"n": object()}}, "TypeError"),
        ({"url": "http://[::1/jobs"}, "BadUrl"),
    ],
)
async def test_what_makes_no_request_is_not_sent(changed: dict[str, Any], error: str) -> None:
    """Left unsettled, a submission that never left would count as one that may have arrived."""
    async with serving(answer()) as server:
        request = replace(REQUEST, **{"url": server.url, **changed})
        async with ProviderHttp(Secrets({"PASTED": "s3cr\u00e9t"}), reuse=False) as http:
            assert await http.send(request, "submit") == {"kind": "not_sent", "error": error}
        assert server.requests == []


async def test_url_body_and_secret_are_never_logged(capfd: pytest.CaptureFixture[str]) -> None:
    async def behave(_: Request, writer: Writer) -> None:
        writer.transport.abort()

    async with provider(behave) as (server, http):
        auth = {"kind": "bearer", "secret": "env:KEY"}
        url = f"{server.url}/jobs/private-path"
        await http.send(
            replace(REQUEST, url=url, auth=auth, method="POST", body={"prompt": "a whale"}),
            "submit",
        )
    said = "".join(capfd.readouterr())
    assert "provider request failed" in said
    assert not any(secret in said for secret in ("private-path", "s3cret", "whale"))


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://example.com/", "PlainHttp"),
        ("ftp://example.com/", "BadUrl"),
        ("https:///path", "BadUrl"),
        ("https://127.0.0.1/", "ConnectError"),
        ("https://localhost/", "ConnectError"),
        ("https://[::1]/", "ConnectError"),
        ("https://169.254.169.254/latest/meta-data", "ConnectError"),
        ("https://10.0.0.1/", "ConnectError"),
    ],
)
async def test_only_the_public_internet_over_https_unless_local(url: str, error: str) -> None:
    async with ProviderHttp(Secrets({}), reuse=True) as http:
        outcome = await http.send(replace(REQUEST, url=url, local=False), "poll")
    assert outcome == {"kind": "not_sent", "error": error}


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    assert (await send(answer()))["kind"] == "response"


async def test_one_slow_host_does_not_take_all_connections() -> None:
    async def slow(_: Request, writer: Writer) -> None:
        await asyncio.sleep(60)

    async with (
        serving(answer()) as quick,
        provider(slow, per_host=2, connections=8) as (
            server,
            http,
        ),
    ):
        waiting = [
            asyncio.create_task(http.send(replace(REQUEST, url=server.url, timeout_s=0.6), "poll"))
            for _ in range(8)
        ]
        await asyncio.sleep(0)
        outcome = await http.send(replace(REQUEST, url=quick.url), "poll")
        assert outcome["kind"] == "response"
        kinds = [outcome["kind"] for outcome in await asyncio.gather(*waiting)]
        assert server.connections <= 6
    assert set(kinds) <= {"timeout", "not_sent"}


async def test_connections_are_kept_for_polls_and_not_for_submissions() -> None:
    for reuse, expected in ((True, 1), (False, 5)):
        async with provider(answer(), reuse=reuse) as (server, http):
            for _ in range(5):
                await http.send(replace(REQUEST, url=server.url), "poll")
            assert server.connections == expected


async def test_cookies_are_not_kept() -> None:
    async with provider(answer(b"{}", 200, {"set-cookie": "a=1; path=/"})) as (server, http):
        for _ in range(2):
            await http.send(replace(REQUEST, url=server.url), "poll")
        assert not any("cookie" in request.headers for request in server.requests)


async def test_timeouts_leak_no_connection() -> None:
    """Cancelled requests once left slots behind until every call was a PoolTimeout."""
    slow = True

    async def behave(request: Request, writer: Writer) -> None:
        if slow:
            await asyncio.sleep(60)
        await answer()(request, writer)

    async with provider(behave, connections=4, per_host=4) as (server, http):
        request = replace(REQUEST, url=server.url, timeout_s=0.1)
        outcomes = await asyncio.gather(*(http.send(request, "poll") for _ in range(12)))
        assert {outcome["kind"] for outcome in outcomes} <= {"timeout", "not_sent"}
        slow = False
        for _ in range(8):
            assert (await http.send(replace(request, timeout_s=2), "poll"))["kind"] == "response"


def test_httpx_still_hides_its_network_where_we_replace_it() -> None:
    transport = httpx.AsyncHTTPTransport(trust_env=False)
    assert hasattr(transport._pool, "_network_backend")
