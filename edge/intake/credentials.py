"""
How a request identifies us, from references to secrets and nothing else.

The kinds are those of `_auth_problems`. What is made here stays in memory for one request; `hidden`
is what must not be passed on if a provider repeats it in an answer.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from edge.intake.secrets import Secrets

REDACTED = b"[secret]"

# Shorter ones would be found in innocent text.
SHORTEST_HIDDEN = 6


class Missing(Exception):
    """A secret that a request needs is not there; the text is its reference."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A header to send, and the texts in it that are secret."""

    header: str
    value: str
    secrets: tuple[str, ...]

    def hide(self, raw: bytes) -> bytes:
        """Return `raw` with every secret in it blanked."""
        for secret in self.secrets:
            if len(secret) >= SHORTEST_HIDDEN:
                raw = raw.replace(secret.encode(), REDACTED)
                # JSON may be written so.
                raw = raw.replace(secret.replace("/", "\\/").encode(), REDACTED)
        return raw


NONE = Credential("", "", ())


async def resolve(auth: Mapping[str, Any] | None, secrets: Secrets, now: float) -> Credential:
    """Return what `auth` asks for at `now` (Unix time). Raises Missing, and ValueError."""
    auth = auth or {}
    kind = auth.get("kind", "none")
    if kind == "none":
        return NONE
    header = str(auth.get("header") or "authorization").lower()
    secret = await _secret(auth.get("secret"), secrets)
    if kind in ("bearer", "header"):
        prefix = auth.get("prefix", "Bearer " if kind == "bearer" else "")
        return Credential(header, f"{prefix}{secret}", (secret,))
    name, secret = await _pair(auth.get("id"), secret, secrets)
    if kind == "basic":
        coded = base64.b64encode(f"{name}:{secret}".encode()).decode()
        return Credential(header, f"Basic {coded}", (secret, coded))
    if kind == "jwt-hs256":
        claims = {
            "iss": name,
            "exp": int(now) + int(auth.get("lifetime_s", 1800)),
            "nbf": int(now) - int(auth.get("early_s", 5)),
        }
        token = jwt.encode(claims, secret, algorithm="HS256")
        prefix = auth.get("prefix", "Bearer ")
        return Credential(header, f"{prefix}{token}", (secret, token))
    raise ValueError("unknown kind of credential")


async def _secret(reference: object, secrets: Secrets) -> str:
    value = await secrets.resolve(reference) if isinstance(reference, str) else None
    if value is None:
        raise Missing(str(reference))
    if re.search(r"[\x00-\x1f\x7f]", value):
        # Pasted with a line break; it would end the header.
        raise ValueError("a secret of several lines")
    return value


async def _pair(reference: object, secret: str, secrets: Secrets) -> tuple[str, str]:
    """Return id and secret, from two references or from one that holds `id:secret`."""
    if reference is not None:
        return await _secret(reference, secrets), secret
    name, colon, rest = secret.partition(":")
    if not colon:
        raise ValueError("a secret without its id")
    return name, rest
