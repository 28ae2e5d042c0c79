"""Keys that providers publish as JWKS."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from prometheus_client import Counter

from edge import logs
from edge.intake.outcomes import Outcome
from edge.intake.provider_http import ProviderHttp, ProviderRequest
from edge.intake.signatures import Key
from edge.published import Published

logger = logs.get(__name__)

FETCHES = Counter(
    "aivedio_jwks_fetches_total", "Fetches of published keys.", ["provider", "result"]
)

# A callback waits for this, beside its body and its commit.
TIMEOUT = 2.0
MAX_BYTES = 64 * 1024
MAX_KEYS = 32

_NOBODY = UUID(int=0)
_NAME = re.compile(r"[\x21-\x7e]{1,64}")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a provider publishes its keys. `local`: plain http and private addresses are fine."""

    provider: str
    url: str
    local: bool


class Jwks(Published[Source, Key]):
    """The kept sets, by where they come from."""

    def __init__(self, http: ProviderHttp, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(self._ask, clock=clock)
        self._http = http

    async def _ask(self, source: Source) -> Sequence[Key]:
        keys = parse(await self._http.send(_request(source), "jwks"))
        FETCHES.labels(source.provider, "keys" if keys else "none").inc()
        if not keys:
            logger.warning("published keys not fetched", provider=source.provider)
        return keys


def parse(outcome: Outcome) -> Sequence[Key]:
    """Return the keys of an answer that we could verify with; anything else is none."""
    document = outcome.get("body")
    if outcome.get("http_status") != 200 or not isinstance(document, dict):
        return ()
    return from_document(document)


def from_document(document: dict[str, Any]) -> Sequence[Key]:
    """Return the usable keys of a JWKS. A key that we do not understand is left out."""
    entries = document.get("keys")
    if not isinstance(entries, list):
        return ()
    return [key for entry in entries[:MAX_KEYS] if (key := _key(entry)) is not None]


def _key(entry: object) -> Key | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    name = entry.get("kid")
    if name is not None and not isinstance(name, str):
        return None
    try:
        material = jwt.PyJWK(entry).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(material, (Ed25519PublicKey, RSAPublicKey)):
        return None
    # The name is written down with each callback that the key verifies.
    version = name if name is not None and _NAME.fullmatch(name) else "published"
    return Key(version, material, name)


def _request(source: Source) -> ProviderRequest:
    return ProviderRequest(
        attempt_id=_NOBODY,
        lease_token=0,
        provider=source.provider,
        credential="",
        method="GET",
        url=source.url,
        headers=None,
        body=None,
        auth=None,
        timeout_s=TIMEOUT,
        max_bytes=MAX_BYTES,
        local=source.local,
        trace_id=None,
    )
