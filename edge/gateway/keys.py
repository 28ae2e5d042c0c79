"""
What session tokens are checked with.

A token names its algorithm, and each kind of key admits its own only:

    HS256          a secret shared with whoever makes the tokens; also for tokens of our own logins
    RS256, ES256   public keys, from PEM files or published as JWKS

Keys rotate without anybody being logged out: an older secret and older PEM files stay beside the
new ones until their tokens are over, and a published key that is not known yet is asked for, at
most once a minute for all callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import jwt
import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from edge import errors, logs
from edge.published import Published

logger = logs.get(__name__)

LEEWAY_S = 5
FETCH_WITHIN_S = 3.0
LARGEST_SET = 64 * 1024
MOST_KEYS = 32

_SECRET_BYTES = 32
_RSA_BITS = 2048
_REQUIRED: Final = ["sub", "tenant", "sid", "iat", "exp"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key. A name that both it and a token have must be the same."""

    algorithm: str
    material: Any
    name: str | None = None


def secret(text: str) -> Key:
    """Return the key that a shared secret is. Raises ValueError for one that can be guessed."""
    if len(text.encode()) < _SECRET_BYTES:
        raise ValueError(f"the secret of session tokens needs {_SECRET_BYTES} bytes or more")
    return Key("HS256", text)


def pem_file(path: Path) -> Key:
    """Return the public key in a PEM file. Raises ValueError, naming the file."""
    try:
        key = public(load_pem_public_key(path.read_bytes()))
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{path} holds no public key in PEM") from error
    if key is None:
        raise ValueError(f"{path} is neither RSA of {_RSA_BITS} bits or more nor P-256")
    return key


def public(material: object, name: str | None = None) -> Key | None:
    """Return the key that public material is, None for a kind or a size that is not admitted."""
    if isinstance(material, RSAPublicKey) and material.key_size >= _RSA_BITS:
        return Key("RS256", material, name)
    if isinstance(material, EllipticCurvePublicKey) and isinstance(material.curve, SECP256R1):
        return Key("ES256", material, name)
    return None


def from_document(document: object) -> list[Key]:
    """Return the usable keys of a JWKS. What is not understood is left out."""
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return []
    return [key for entry in entries[:MOST_KEYS] if (key := _published_key(entry)) is not None]


def _published_key(entry: object) -> Key | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    name = entry.get("kid")
    try:
        key = public(jwt.PyJWK(entry).key, name if isinstance(name, str) else None)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return key if key is None or entry.get("alg", key.algorithm) == key.algorithm else None


class Keys:
    """
    Checks session tokens, and makes those of logins where there is a secret to make them with.

    `secrets`: the first one makes tokens, all are good for checking. `issuer` and `audience` are
    asked of tokens that public keys check: whoever has those keys makes tokens for others, too.
    """

    def __init__(
        self,
        secrets: Sequence[str] = (),
        public_keys: Iterable[Key] = (),
        *,
        jwks_url: str | None = None,
        issuer: str | None = None,
        audience: str | None = None,
    ) -> None:
        self._secrets = [secret(text) for text in secrets]
        self._known = [*self._secrets, *public_keys]
        self._url = jwks_url
        self._issuer = issuer
        self._audience = audience
        self._published: Published[str, Key] = Published(_fetch)
        if not self._known and jwks_url is None:
            raise ValueError("there is nothing to check session tokens with")

    async def claims(self, token: str) -> dict[str, Any]:
        """
        Return the verified claims.

        Raises `jwt.InvalidTokenError`, and `errors.Unavailable` while there are no keys to be had.
        """
        header = jwt.get_unverified_header(token)
        algorithm, name = header.get("alg"), header.get("kid")
        found = self._verified(token, self._known, algorithm, name)
        if found is not None:
            return found
        if self._url is None or algorithm == "HS256":
            raise jwt.InvalidSignatureError("no key made this token")
        published, fetched_now = await self._published.keys(self._url)
        if not published:
            raise errors.Unavailable("there are no published keys to check a token with")
        found = self._verified(token, published, algorithm, name)
        if found is None and not fetched_now:
            renewed = await self._published.renewed(self._url)
            found = self._verified(token, renewed or (), algorithm, name)
        if found is None:
            raise jwt.InvalidSignatureError("no key made this token")
        return found

    def _verified(
        self, token: str, keys: Sequence[Key], algorithm: object, name: object
    ) -> dict[str, Any] | None:
        """Return the claims if one of the keys made the token; raises for claims that are wrong."""
        for key in keys:
            named_otherwise = key.name is not None and name is not None and key.name != name
            if key.algorithm != algorithm or named_otherwise:
                continue
            shared = key.algorithm == "HS256"
            try:
                return jwt.decode(
                    token,
                    key.material,
                    algorithms=[key.algorithm],
                    leeway=LEEWAY_S,
                    issuer=None if shared else self._issuer,
                    audience=None if shared else self._audience,
                    options={
                        "require": _REQUIRED,
                        "verify_aud": not shared and self._audience is not None,
                    },
                )
            except jwt.InvalidSignatureError:
                continue
        return None

    @property
    def can_sign(self) -> bool:
        """Whether tokens can be made here."""
        return bool(self._secrets)

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a session token."""
        return jwt.encode(claims, self._secrets[0].material, algorithm="HS256")

    async def close(self) -> None:
        """End what is in flight."""
        await self._published.close()


async def _fetch(url: str) -> Sequence[Key]:
    """Return the keys that are published at `url`, none for any answer without."""
    try:
        async with (
            httpx.AsyncClient(timeout=FETCH_WITHIN_S, trust_env=False) as client,
            client.stream("GET", url) as answer,
        ):
            body = bytearray()
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > LARGEST_SET:
                    break
        keys = from_document(orjson.loads(body)) if answer.status_code == 200 else []
    except (httpx.HTTPError, httpx.InvalidURL, orjson.JSONDecodeError) as error:
        logger.warning("published keys not fetched", kind=type(error).__name__)
        return ()
    if not keys:
        logger.warning("published keys not fetched", status=answer.status_code)
    return keys
