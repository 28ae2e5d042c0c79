"""Published keys: fetched once for all, kept for a day at most, and never at a forger's pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from edge import published
from edge.intake import jwks
from edge.intake.jwks import Jwks, Source, from_document
from edge.intake.profiles import ProfileRow, parse
from edge.intake.provider_http import ProviderHttp
from edge.intake.secrets import Secrets
from edge.intake.signatures import Failure, Verified
from edge.intake.verifying import Verifying
from tests.py.intake.server import Request, Server, Writer, answer, serving
from tests.py.intake.signers import AUDIENCE, JWKS, SENDERS
from tests.py.support.waiting import eventually_async

NOW = 1_767_225_600
GOOD = orjson.dumps(JWKS)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Publisher:
    """A server of keys whose answer a test may change, and a keeper of what it said."""

    server: Server
    kept: Jwks
    clock: Clock
    verifying: Verifying

    @property
    def source(self) -> Source:
        return Source("p", f"{self.server.url}/jwks.json", True)

    @property
    def fetches(self) -> int:
        return len(self.server.requests)

    async def judge(self, scheme: str = "fal-ed25519", **change: Any) -> Verified | Failure:
        webhook = {"scheme": scheme, "jwks_url": self.source.url, "audience": "env:AUDIENCE"}
        profile = parse(ProfileRow("p", webhook, True, 1))
        assert profile.verifier is not None
        delivery = replace(SENDERS[scheme].delivery(b"{}", NOW), **change)
        return await self.verifying.judge(profile, profile.verifier, delivery, NOW)


@asynccontextmanager
async def publishing(body: bytes = GOOD, **rude: Any) -> AsyncIterator[Publisher]:
    clock = Clock()
    async with (
        serving(answer(body, **rude)) as server,
        ProviderHttp(Secrets({}), reuse=False) as http,
    ):
        kept = Jwks(http, clock=clock)
        try:
            yield Publisher(server, kept, clock, Verifying(Secrets({"AUDIENCE": AUDIENCE}), kept))
        finally:
            await kept.close()


async def test_all_who_need_keys_share_one_fetch() -> None:
    async with publishing() as publisher:
        verdicts = await asyncio.gather(*(publisher.judge() for _ in range(50)))
        assert all(isinstance(verdict, Verified) for verdict in verdicts)
        assert isinstance(await publisher.judge("gemini-dynamic-jwt"), Verified)
        assert publisher.fetches == 1


async def test_one_who_gives_up_waiting_takes_the_fetch_from_nobody() -> None:
    go = asyncio.Event()

    async def slow(request: Request, writer: Writer) -> None:
        await go.wait()
        await answer(GOOD)(request, writer)

    async with publishing() as publisher:
        publisher.server.behave = slow
        waiting = [asyncio.create_task(publisher.judge()) for _ in range(3)]
        await eventually_async(lambda: publisher.fetches == 1)
        waiting[0].cancel()
        go.set()
        assert all(isinstance(verdict, Verified) for verdict in await asyncio.gather(*waiting[1:]))


async def test_keys_are_renewed_in_time_and_not_used_past_their_day() -> None:
    async with publishing() as publisher:
        assert isinstance(await publisher.judge(), Verified)
        publisher.clock.now += published.RENEWED_AFTER + 1
        assert isinstance(await publisher.judge(), Verified)
        await eventually_async(lambda: publisher.fetches == 2)

        publisher.server.behave = answer(b"{}", status=500)
        publisher.clock.now += published.KEPT_FOR - 1
        assert isinstance(await publisher.judge(), Verified)
        await eventually_async(lambda: publisher.fetches == 3)
        publisher.clock.now += published.AGAIN_AFTER_FAILURE + 1
        assert await publisher.judge() is Failure.NO_KEY


async def test_a_new_key_is_found_by_the_first_callback_that_it_signs() -> None:
    old = ed25519.Ed25519PrivateKey.generate().public_key()
    entry = jwt.algorithms.OKPAlgorithm.to_jwk(old, as_dict=True)
    async with publishing(orjson.dumps({"keys": [entry]})) as publisher:
        # The fetch that this callback waited for was its own: it waits for no second one.
        assert await publisher.judge() is Failure.MISMATCH
        assert publisher.fetches == 1
        publisher.server.behave = answer(GOOD)
        publisher.clock.now += published.AGAIN_AFTER_SUCCESS
        assert isinstance(await publisher.judge(), Verified)
        assert publisher.fetches == 2
        publisher.clock.now += published.AGAIN_AFTER_SUCCESS
        assert isinstance(await publisher.judge("gemini-dynamic-jwt"), Verified)
        assert publisher.fetches == 2


@pytest.mark.parametrize("scheme", ["fal-ed25519", "gemini-dynamic-jwt"])
async def test_forgers_cost_the_provider_one_fetch_a_minute(scheme: str) -> None:
    async with publishing() as publisher:
        assert isinstance(await publisher.judge(scheme), Verified)
        for minute in range(3):
            publisher.clock.now += published.AGAIN_AFTER_SUCCESS
            for _ in range(40):
                forged = _forged(scheme)
                assert await publisher.judge(scheme, headers=forged) is Failure.MISMATCH
            assert publisher.fetches == 2 + minute
        assert isinstance(await publisher.judge(scheme), Verified)


def _forged(scheme: str) -> dict[str, list[str]]:
    headers = dict(SENDERS[scheme].delivery(b"{}", NOW).headers)
    if scheme == "fal-ed25519":
        headers["x-fal-webhook-signature"] = ["ab" * 64]
    else:
        claims = {"aud": AUDIENCE, "iat": NOW, "exp": NOW + 60}
        stranger = jwt.encode(claims, "x" * 32, headers={"alg": "HS256"}).rpartition(".")[2]
        head = jwt.utils.base64url_encode(b'{"alg":"RS256","kid":"new"}').decode()
        headers["webhook-signature"] = [
            f"{head}.{jwt.utils.base64url_encode(b'{}').decode()}.{stranger}"
        ]
    return {name: list(values) for name, values in headers.items()}


async def test_a_malformed_callback_causes_no_fetch_but_the_first() -> None:
    async with publishing() as publisher:
        assert isinstance(await publisher.judge(), Verified)
        publisher.clock.now += published.AGAIN_AFTER_SUCCESS
        assert await publisher.judge(headers={}) is Failure.MISSING
        assert await publisher.judge("gemini-dynamic-jwt", headers={}) is Failure.MISSING
        assert publisher.fetches == 1


@pytest.mark.parametrize(
    "rude",
    [
        {"status": 404},
        {"status": 302, "headers": {"location": "/elsewhere"}},
        {"body": b"not JSON"},
        {"body": b"[]"},
        {"body": b'{"keys": 7}'},
        {"body": b'{"keys": []}'},
        {"body": b'{"keys": [' + b" " * jwks.MAX_BYTES + b"]}"},
    ],
)
async def test_what_brings_no_keys_is_not_accepted_and_not_repeated_at_once(
    rude: dict[str, Any],
) -> None:
    async with publishing(**rude) as publisher:
        assert await publisher.judge() is Failure.NO_KEY
        assert await publisher.judge() is Failure.NO_KEY
        assert publisher.fetches == 1
        publisher.server.behave = answer(GOOD)
        publisher.clock.now += published.AGAIN_AFTER_FAILURE
        assert isinstance(await publisher.judge(), Verified)


async def test_a_publisher_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks, "TIMEOUT", 0.2)

    async def hang(_: Request, __: Writer) -> None:
        await asyncio.Event().wait()

    async with publishing() as publisher:
        publisher.server.behave = hang
        assert await publisher.judge() is Failure.NO_KEY


async def test_keys_come_from_public_addresses_over_https() -> None:
    async with publishing() as publisher:
        private = replace(publisher.source, local=False)
        assert await publisher.kept.keys(private) == ((), True)
        secure = replace(private, url=private.url.replace("http:", "https:"))
        assert await publisher.kept.keys(secure) == ((), True)
        assert publisher.server.connections == 0


def test_a_key_that_is_not_for_us_is_left_out() -> None:
    secret = jwt.algorithms.OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate(), as_dict=True)
    good = JWKS["keys"][0]
    others: list[Any] = [
        None,
        7,
        {},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "OKP", "crv": "Ed25519", "x": "short"},
        {"kty": "RSA", "n": 7, "e": "AQAB"},
        {**good, "use": "enc"},
        {**good, "kid": 7},
        secret,
    ]
    assert len(from_document({"keys": [*others, good]})) == 1
    assert len(from_document({"keys": [good] * 100})) == jwks.MAX_KEYS
    (odd,) = from_document({"keys": [{**good, "kid": "a\0b"}]})
    assert (odd.version, odd.id) == ("published", "a\0b")
