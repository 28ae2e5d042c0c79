"""
Keys that providers publish as JWKS, fetched when needed and kept for a while.

Whoever needs keys shares one fetch. A set is renewed in the background while it is still good, and
not used past a day. After a signature that no kept key made, a set is fetched again, at most once a
minute for all callers: forged callbacks cost the provider nothing. A fetch that fails leaves the
kept keys in use until their day is over, and is not repeated for some seconds.
"""

from __future__ import annotations

import asyncio
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

logger = logs.get(__name__)

FETCHES = Counter(
    "aivedio_jwks_fetches_total", "Fetches of published keys.", ["provider", "result"]
)

# A callback waits for this, beside its commit.
TIMEOUT = 3.0
MAX_BYTES = 64 * 1024
MAX_KEYS = 32
KEPT_FOR = 24 * 3600.0
RENEWED_AFTER = 12 * 3600.0
AGAIN_AFTER_SUCCESS = 60.0
AGAIN_AFTER_FAILURE = 5.0

_NOBODY = UUID(int=0)
_NAME = re.compile(r"[\x21-\x7e]{1,64}")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a provider publishes its keys. `local`: plain http and private addresses are fine."""

    provider: str
    url: str
    local: bool


@dataclass(slots=True)
class _Kept:
    keys: Sequence[Key] = ()
    fetched_at: float | None = None
    again_at: float = 0.0
    flight: asyncio.Task[None] | None = None


class Jwks:
    """The kept sets, by where they come from."""

    def __init__(self, http: ProviderHttp, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._http = http
        self._clock = clock
        self._kept: dict[Source, _Kept] = {}

    async def keys(self, source: Source) -> tuple[Sequence[Key], bool]:
        """Return the keys, none if there are none to be had, and whether they were fetched now."""
        kept = self._kept.setdefault(source, _Kept())
        age = None if kept.fetched_at is None else self._clock() - kept.fetched_at
        if age is not None and age < KEPT_FOR:
            if age > RENEWED_AFTER:
                self._start(source, kept)
            return kept.keys, False
        return (kept.keys if await self._fetched(source, kept) else ()), True

    async def renewed(self, source: Source) -> Sequence[Key] | None:
        """Fetch the keys again and return them; None if that was done a moment ago, or failed."""
        kept = self._kept.setdefault(source, _Kept())
        return kept.keys if await self._fetched(source, kept) else None

    async def close(self) -> None:
        """End what is in flight."""
        flights = [kept.flight for kept in self._kept.values() if kept.flight is not None]
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def _fetched(self, source: Source, kept: _Kept) -> bool:
        """Wait for a fetch, if one may be made; return whether it brought keys."""
        flight = self._start(source, kept)
        if flight is None:
            return False
        before = kept.fetched_at
        # Whoever gives up waiting must not take the fetch away from the others.
        await asyncio.wait([flight])
        return kept.fetched_at != before

    def _start(self, source: Source, kept: _Kept) -> asyncio.Task[None] | None:
        if kept.flight is None and self._clock() >= kept.again_at:
            kept.flight = asyncio.create_task(self._fetch(source, kept))
        return kept.flight

    async def _fetch(self, source: Source, kept: _Kept) -> None:
        keys: Sequence[Key] = ()
        try:
            keys = parse(await self._http.send(_request(source), "jwks"))
        finally:
            kept.flight = None
            now = self._clock()
            kept.again_at = now + (AGAIN_AFTER_SUCCESS if keys else AGAIN_AFTER_FAILURE)
            FETCHES.labels(source.provider, "keys" if keys else "none").inc()
            if keys:
                kept.keys, kept.fetched_at = keys, now
            else:
                logger.warning("published keys not fetched", provider=source.provider)


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
