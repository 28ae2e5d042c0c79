"""
What all schemes share: a delivery, the keys, the verdict, and strict readers of headers.

A scheme judges the raw body, never a parsed copy. It is strict: one header of each kind, digits
only in a timestamp, an age window in both directions, a version tag that it knows. It compares in
constant time and fails closed: no key, no acceptance.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

# A sender with both keys of a rotation sends two signatures. More than this is not a sender.
MAX_SIGNATURES = 16
MAX_HEADER = 4096

_HEADER_NAME = re.compile(r"[a-z0-9-]{1,64}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")

Settings = Mapping[str, Any]
Headers = Mapping[str, Sequence[str]]


class Failure(StrEnum):
    """Why a callback counts as unsigned. The names are those of aivedio.signature_failure."""

    MISSING = "missing"
    MALFORMED = "malformed"
    MISMATCH = "mismatch"
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    NO_KEY = "no_key"


class Refusal(Exception):
    """A delivery is not signed, for this reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Delivery:
    """
    A request as it came: `headers` have lower-case names and every value that was sent, `path` and
    `query` are still encoded.
    """

    body: bytes
    headers: Headers
    method: str = "POST"
    path: str = "/"
    query: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """
    One key of a provider. `version` is recorded with what it verified. Of a published key, `id` is
    its name there, and `audience` whom the tokens that it signs must be meant for.
    """

    version: str
    material: bytes | Ed25519PublicKey | RSAPublicKey
    id: str | None = None
    audience: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """Which key signed, and how much older the signature is than our clock, where it says when."""

    version: str
    age: float | None


class Verifier(ABC):
    """
    One profile's way to tell who signed.

    `published`: its keys come from the provider's JWKS, not from secrets of ours. A scheme that
    does not cover the body proves only that somebody called.
    """

    covers_body: bool = True
    published: ClassVar[bool] = False

    def verify(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified | Failure:
        """Return which of `keys` signed the delivery, or why none did; `now` in Unix seconds."""
        try:
            return self._judge(delivery, keys, now)
        except Refusal as refusal:
            return refusal.failure

    def may_be_rotated(self, failure: Failure, delivery: Delivery, keys: Sequence[Key]) -> bool:
        """Whether a failure can mean that the provider has published another key since."""
        return False

    def key(self, version: str, text: str) -> Key | None:
        """Return the key that a configured secret stands for, or None if it is not one."""
        return None

    @abstractmethod
    def _judge(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified:
        """Return which key signed. Raises `Refusal`."""


class SecretVerifier(Verifier):
    """A scheme whose key is a secret that both sides know."""

    def __init__(self, settings: Settings, secret_format: str = "raw") -> None:
        self._secret_format = text_setting(settings, "secret_format", secret_format)
        if self._secret_format not in SECRET_FORMATS:
            raise ValueError("secret_format is unknown")

    def key(self, version: str, text: str) -> Key | None:
        """Return the key of a configured secret."""
        secret = SECRET_FORMATS[self._secret_format](text)
        return Key(version, secret) if secret else None


def header(delivery: Delivery, name: str, at_most: int = MAX_HEADER) -> str:
    """Return the one value of a header. Raises `Refusal` for none, several, or a very long one."""
    values = delivery.headers.get(name, ())
    if not values or not values[0]:
        raise Refusal(Failure.MISSING)
    # Two values leave open which one the sender meant, and which one a proxy judged.
    if len(values) > 1 or len(values[0]) > at_most:
        raise Refusal(Failure.MALFORMED)
    return values[0]


def octets(text: str) -> bytes:
    """Return the bytes of a header or an address as they were sent. Raises `Refusal`."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise Refusal(Failure.MALFORMED) from None


def seconds(text: str) -> int:
    """Return a timestamp in Unix seconds. Raises `Refusal`."""
    # Ten digits reach the year 2286. int() alone would also take signs, spaces and other scripts.
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise Refusal(Failure.MALFORMED)
    return int(text)


def age(at: float, now: float, tolerance: float) -> float:
    """Return how old `at` is. Raises `Refusal` when that is more than tolerated, either way."""
    if now - at > tolerance:
        raise Refusal(Failure.TOO_OLD)
    if at - now > tolerance:
        raise Refusal(Failure.TOO_NEW)
    return now - at


def hmac_signer(keys: Sequence[Key], content: bytes, candidates: Iterable[bytes]) -> str:
    """Return the version of the key whose HMAC-SHA256 of `content` is a candidate, or refuse."""
    if not keys:
        raise Refusal(Failure.NO_KEY)
    signatures = list(candidates)
    matched: str | None = None
    for key in keys:
        if not isinstance(key.material, bytes):
            continue
        expected = hmac.new(key.material, content, hashlib.sha256).digest()
        for signature in signatures:
            if hmac.compare_digest(expected, signature) and matched is None:
                matched = key.version
    if matched is None:
        raise Refusal(Failure.MISMATCH)
    return matched


def from_hex(text: str, size: int) -> bytes | None:
    """Return `size` bytes written as hexadecimal digits and nothing else, or None."""
    # bytes.fromhex alone would also take spaces.
    if len(text) != 2 * size or not _HEX.fullmatch(text):
        return None
    return bytes.fromhex(text)


def from_base64(text: str, size: int | None = None) -> bytes | None:
    """Return the bytes of a padded base64 text, or None; with `size`, of that many bytes only."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return decoded if size is None or len(decoded) == size else None


def raw_secret(text: str) -> bytes | None:
    """Return a secret that is used as it is written."""
    return text.encode() or None


def base64_secret(text: str) -> bytes | None:
    """Return the key of `whsec_<base64>`; prefix and padding are optional."""
    encoded = text.removeprefix("whsec_").rstrip("=")
    return from_base64(encoded + "=" * (-len(encoded) % 4)) or None


def secret_by_prefix(text: str) -> bytes | None:
    """Return base64 behind `whsec_`, and any other text as it is."""
    return base64_secret(text) if text.startswith("whsec_") else raw_secret(text)


SECRET_FORMATS = {"raw": raw_secret, "base64": base64_secret, "by_prefix": secret_by_prefix}


def text_setting(settings: Settings, name: str, default: str | None = None) -> str:
    """Return a text of the profile. Raises ValueError for anything else, or when it must be set."""
    value = settings.get(name)
    if value is None:
        value = default
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text")
    return value


def header_setting(settings: Settings, name: str, default: str | None = None) -> str:
    """Return the name of a header in lower case. Raises ValueError if it is none."""
    value = text_setting(settings, name, default).lower()
    if not _HEADER_NAME.fullmatch(value):
        raise ValueError(f"{name} must be the name of a header")
    return value


def tolerance_setting(settings: Settings) -> float:
    """Return how many seconds a timestamp may be off. Raises ValueError."""
    value = settings.get("tolerance_s")
    if value is None:
        return 300.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 86_400:
        raise ValueError("tolerance_s must be a number from 1 to 86400")
    return float(value)
