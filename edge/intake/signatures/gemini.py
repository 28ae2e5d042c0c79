"""
Gemini's webhooks of a single request: the signature header is a JWT, signed by RS256.

Whether the token binds the body is not documented. So it proves only that Google called, and the
job is asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from edge.intake.signatures.judging import (
    Delivery,
    Failure,
    Key,
    Refusal,
    Settings,
    Verified,
    Verifier,
    age,
    header,
    tolerance_setting,
)

HEADER = "webhook-signature"
LONGEST = 8192
SMALLEST_KEY = 2048


class GeminiDynamic(Verifier):
    """The token names its key, and must be meant for the audience that comes with the key."""

    covers_body = False
    published = True

    def __init__(self, settings: Settings) -> None:
        self._tolerance = tolerance_setting(settings)

    def _judge(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified:
        token = header(delivery, HEADER, LONGEST)
        name = _key_name(token)
        if not keys:
            raise Refusal(Failure.NO_KEY)
        claims, version = self._claims(token, [key for key in keys if key.id == name])
        issued, expires = (_moment(claims, name) for name in ("iat", "exp"))
        if now >= expires:
            raise Refusal(Failure.TOO_OLD)
        if "nbf" in claims and _moment(claims, "nbf") > now + self._tolerance:
            raise Refusal(Failure.TOO_NEW)
        return Verified(version, age(issued, now, self._tolerance))

    def may_be_rotated(self, failure: Failure, delivery: Delivery, keys: Sequence[Key]) -> bool:
        """A name that no known key has may be a new key's."""
        if failure is not Failure.MISMATCH:
            return False
        name = _key_name(header(delivery, HEADER, LONGEST))
        return all(key.id != name for key in keys)

    def _claims(self, token: str, keys: Sequence[Key]) -> tuple[dict[str, Any], str]:
        for key in keys:
            if not isinstance(key.material, RSAPublicKey) or key.material.key_size < SMALLEST_KEY:
                continue
            if key.audience is None:
                raise Refusal(Failure.NO_KEY)
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key.material,
                    algorithms=["RS256"],
                    audience=key.audience,
                    options={
                        "require": ["aud", "iat", "exp"],
                        # Judged by our clock, which a test can set, and in both directions.
                        "verify_exp": False,
                        "verify_iat": False,
                        "verify_nbf": False,
                    },
                )
            except jwt.InvalidTokenError:
                continue
            return claims, key.version
        raise Refusal(Failure.MISMATCH)


def _key_name(token: str) -> str:
    try:
        head = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, ValueError):
        raise Refusal(Failure.MALFORMED) from None
    name = head.get("kid")
    # An algorithm that the token chooses is how forged tokens pass: it has no choice.
    if head.get("alg") != "RS256" or not isinstance(name, str) or not name:
        raise Refusal(Failure.MALFORMED)
    return name


def _moment(claims: dict[str, Any], name: str) -> float:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e11:
        raise Refusal(Failure.MALFORMED)
    return float(value)
