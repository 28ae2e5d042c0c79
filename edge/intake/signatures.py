"""
Who signed these bytes: the schemes by which providers sign their callbacks.

A scheme judges the raw body, never a parsed copy. It is strict: one header of each kind, digits
only in a timestamp, an age window in both directions, a version tag that it knows. It compares in
constant time and fails closed: no key, no acceptance.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

# A sender with both keys of a rotation sends two signatures. More than this is not a sender.
MAX_SIGNATURES = 16
MAX_HEADER = 4096


class Failure(StrEnum):
    """Why a callback counts as unsigned. The names are those of aivedio.signature_failure."""

    MISSING = "missing"
    MALFORMED = "malformed"
    MISMATCH = "mismatch"
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    NO_KEY = "no_key"


@dataclass(frozen=True, slots=True)
class Key:
    """One signing key of a provider. `version` is recorded with what it verified."""

    version: str
    secret: bytes


@dataclass(frozen=True, slots=True)
class Verified:
    """Which key signed, and how much older the signature is than our clock, in seconds."""

    version: str
    age: float


Headers = Mapping[str, Sequence[str]]
Verify = Callable[[bytes, Headers, Sequence[Key], float, float], Verified | Failure]


def standard_webhooks(
    body: bytes, headers: Headers, keys: Sequence[Key], tolerance: float, now: float
) -> Verified | Failure:
    """
    Verify Standard Webhooks with HMAC-SHA256 (`v1,<base64>`), as standardwebhooks.com defines it.

    `headers` have lower-case names and every value that was sent; `now` is in Unix seconds. Items
    of the signature list that are not well formed are skipped, as are versions other than v1.
    """
    found = [_single(headers, f"webhook-{part}") for part in ("id", "timestamp", "signature")]
    for value in found:
        if isinstance(value, Failure):
            return value
    message_id, timestamp, signatures = (str(value) for value in found)

    # Ten digits reach the year 2286. int() alone would also take signs, spaces and other scripts.
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 10):
        return Failure.MALFORMED
    candidates = _candidates(signatures)
    if not candidates:
        return Failure.MALFORMED
    if not keys:
        return Failure.NO_KEY

    content = b".".join((message_id.encode("latin-1"), timestamp.encode(), body))
    matched: str | None = None
    for key in keys:
        expected = hmac.new(key.secret, content, hashlib.sha256).digest()
        for candidate in candidates:
            if hmac.compare_digest(expected, candidate) and matched is None:
                matched = key.version
    if matched is None:
        return Failure.MISMATCH

    # The age is judged last: only a signed timestamp says anything.
    age = now - int(timestamp)
    if age > tolerance:
        return Failure.TOO_OLD
    if age < -tolerance:
        return Failure.TOO_NEW
    return Verified(matched, age)


def standard_webhooks_secret(text: str) -> bytes | None:
    """Return the key of `whsec_<base64>` (padding optional), or None if it is not one."""
    encoded = text.removeprefix("whsec_").rstrip("=")
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True) or None
    except (binascii.Error, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to sign: how to verify, and how the configured text becomes a key."""

    verify: Verify
    secret: Callable[[str], bytes | None]


SCHEMES: Mapping[str, Scheme] = {
    "standard-webhooks-v1": Scheme(standard_webhooks, standard_webhooks_secret),
}


def _single(headers: Headers, name: str) -> str | Failure:
    values = headers.get(name, ())
    if not values or not values[0]:
        return Failure.MISSING
    # Two values leave open which one the sender meant, and which one a proxy judged.
    if len(values) > 1 or len(values[0]) > MAX_HEADER:
        return Failure.MALFORMED
    return values[0]


def _candidates(signatures: str) -> list[bytes]:
    """Return the decoded v1 signatures of a space-separated list."""
    candidates: list[bytes] = []
    for item in signatures.split(" ", MAX_SIGNATURES)[:MAX_SIGNATURES]:
        version, _, encoded = item.partition(",")
        if version != "v1":
            continue
        try:
            signature = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(signature) == hashlib.sha256().digest_size:
            candidates.append(signature)
    return candidates
