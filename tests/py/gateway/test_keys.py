"""Which session tokens are believed, whoever made them and whenever keys change."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from edge import errors, published
from edge.gateway import keys
from edge.gateway.keys import Keys
from tests.py.gateway.conftest import SECRET, Person, StartGateway
from tests.py.intake.server import Server, answer, serving

RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"sub": "u", "tenant": "t", "sid": "s", "iat": now, "exp": now + 60, **more}


def token(key: Any, algorithm: str, kid: str | None = None, **more: Any) -> str:
    headers = None if kid is None else {"kid": kid}
    return jwt.encode(claims(**more), key, algorithm=algorithm, headers=headers)


def pem(key: Any) -> bytes:
    encoded: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return encoded


def jwk(key: Any, kid: str | None = None, **more: Any) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    found: dict[str, Any] = algorithm.to_jwk(key.public_key(), as_dict=True)
    return {**found, **({} if kid is None else {"kid": kid}), **more}


async def believes(known: Keys, text: str) -> bool:
    try:
        return bool(await known.claims(text))
    except jwt.InvalidTokenError:
        return False


async def test_each_key_admits_its_own_algorithm(tmp_path: Path) -> None:
    paths = []
    for name, key in (("rsa", RSA), ("ec", EC)):
        paths.append(tmp_path / f"{name}.pem")
        paths[-1].write_bytes(pem(key))
    known = Keys([SECRET], [keys.pem_file(path) for path in paths])
    assert await believes(known, token(SECRET, "HS256"))
    assert await believes(known, token(RSA, "RS256"))
    assert await believes(known, token(EC, "ES256"))
    assert await believes(known, token(RSA, "RS256", kid="a name that the file has not"))
    for wrong in (
        token(OTHER_RSA, "RS256"),
        token(RSA, "RS512"),
        token(RSA, "PS256"),
        token(2 * SECRET, "HS512"),
        token(RSA, "RS256", exp=int(time.time()) - 60),
        jwt.encode({"sub": "u"}, EC, algorithm="ES256"),
        token(EC, "ES256")[:-6] + "AAAAAA",
    ):
        assert not await believes(known, wrong)
    # The public key as a secret: the oldest trick.
    head, body, _ = token(SECRET, "HS256").split(".")
    mac = hmac.new(pem(RSA), f"{head}.{body}".encode(), hashlib.sha256).digest()
    assert not await believes(known, f"{head}.{body}.{jwt.utils.base64url_encode(mac).decode()}")
    only_public = Keys([], [keys.pem_file(paths[0])])
    assert not await believes(only_public, token(SECRET, "HS256"))
    assert not only_public.can_sign


async def test_secrets_rotate() -> None:
    old, new = Keys([SECRET]), Keys(["a new secret, made today, of length", SECRET])
    before, after = old.sign(claims()), new.sign(claims())
    assert await believes(new, before) and await believes(new, after)
    assert await believes(old, before) and not await believes(old, after)


@pytest.mark.parametrize(
    "content",
    [b"", b"x", pem(ed25519.Ed25519PrivateKey.generate())],
    # The same on every worker, which a key that is made anew is not.
    ids=["empty", "no key", "another kind"],
)
def test_a_file_without_a_usable_key_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="key.pem"):
        keys.pem_file(path)
    with pytest.raises(ValueError, match="missing.pem"):
        keys.pem_file(tmp_path / "missing.pem")
    short = rsa.generate_private_key(65537, 1024)
    path.write_bytes(pem(short))
    with pytest.raises(ValueError, match="2048"):
        keys.pem_file(path)


def test_there_must_be_something_to_check_with() -> None:
    with pytest.raises(ValueError, match="nothing"):
        Keys()


@dataclass
class Publisher:
    server: Server
    known: Keys

    def publish(self, *published_keys: dict[str, Any]) -> None:
        self.server.behave = answer(orjson.dumps({"keys": published_keys}))


@asynccontextmanager
async def publishing(
    *published_keys: dict[str, Any], secrets: tuple[str, ...] = (), **more: Any
) -> AsyncIterator[Publisher]:
    async with serving(answer(orjson.dumps({"keys": published_keys}))) as server:
        known = Keys(secrets, jwks_url=f"{server.url}/keys", **more)
        try:
            yield Publisher(server, known)
        finally:
            await known.close()


async def test_published_keys_are_fetched_once_for_all() -> None:
    unusable = (jwk(RSA, "x", use="enc"), jwk(RSA, "y", alg="RS512"), {"kty": "oct", "k": "AAAA"})
    async with publishing(*unusable, {}, jwk(RSA, "one"), jwk(EC, "two")) as publisher:
        known = publisher.known
        told = await asyncio.gather(
            *(believes(known, token(RSA, "RS256", "one")) for _ in range(20)),
            *(believes(known, token(EC, "ES256", "two")) for _ in range(20)),
            believes(known, token(RSA, "RS256")),
        )
        assert all(told)
        assert len(publisher.server.requests) == 1
        assert not await believes(known, token(RSA, "RS256", "two"))
        assert not await believes(known, token(RSA, "RS256", "x"))


async def test_a_new_key_is_found_and_forgers_cause_no_flood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with publishing(jwk(RSA, "old")) as publisher:
        known = publisher.known
        assert await believes(known, token(RSA, "RS256", "old"))
        publisher.publish(jwk(RSA, "old"), jwk(EC, "new"))
        told = await asyncio.gather(
            *(believes(known, token(OTHER_RSA, "RS256", f"forged {n}")) for n in range(50))
        )
        assert not any(told)
        # A moment after the first fetch nobody causes another, not even who is right.
        assert len(publisher.server.requests) == 1
        assert not await believes(known, token(EC, "ES256", "new"))
        known._published._kept[f"{publisher.server.url}/keys"].again_at = 0.0
        assert await believes(known, token(EC, "ES256", "new"))
        assert len(publisher.server.requests) == 2
        assert published.AGAIN_AFTER_SUCCESS >= 60


async def test_issuer_and_audience_are_asked_of_published_keys_only() -> None:
    expected = {"issuer": "https://login.test", "audience": "aivedio"}
    async with publishing(jwk(RSA, "k"), secrets=(SECRET,), **expected) as publisher:
        known = publisher.known
        right = {"iss": "https://login.test", "aud": ["other", "aivedio"]}
        assert await believes(known, token(RSA, "RS256", "k", **right))
        for wrong in ({}, right | {"aud": "other"}, right | {"iss": "https://evil.test"}):
            assert not await believes(known, token(RSA, "RS256", "k", **wrong))
        assert await believes(known, token(SECRET, "HS256"))


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"keys": 7}', b'{"keys": [' + b" " * 70_000])
async def test_while_no_keys_are_to_be_had_nobody_is_called_a_liar(body: bytes) -> None:
    """401 would send everybody to a login; it is 503 that is true."""
    async with publishing(secrets=(SECRET,)) as publisher:
        publisher.server.behave = answer(body)
        with pytest.raises(errors.Unavailable):
            await publisher.known.claims(token(RSA, "RS256", "k"))
        assert await believes(publisher.known, token(SECRET, "HS256"))


async def test_a_gateway_with_published_keys(start_gateway: StartGateway, person: Person) -> None:
    async with publishing(jwk(EC, "k")) as publisher:
        gateway = await start_gateway(keys=publisher.known)
        mine = jwt.decode(person.token(), SECRET, algorithms=["HS256"])
        signed = jwt.encode(mine, EC, algorithm="ES256", headers={"kid": "k"})
        bearer = {"authorization": f"Bearer {signed}"}
        assert (await gateway.client.get("/me", headers=bearer)).status_code == 200
        async with gateway.follow(person.projects[0], bearer) as reader:
            assert (await reader.next()).event == "ready"
        assert (await gateway.client.get("/me", headers=person.bearer())).status_code == 401
        # Without a secret no session can be made of a login link.
        assert (await gateway.client.get("/login?token=" + "x" * 32)).status_code == 401
