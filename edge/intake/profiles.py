"""
What the webhook edge knows of each provider, and where it keeps that up to date.

A profile that cannot be understood does not replace one that could: its provider goes on being
served by the last good one, and the failure is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson
from prometheus_client import Counter

from edge import logs
from edge.database import Database
from edge.intake.jwks import Source
from edge.intake.secrets import Secrets
from edge.intake.signatures import SCHEMES, Key, Verifier

logger = logs.get(__name__)

BAD_PROFILES = Counter(
    "aivedio_webhook_bad_profiles_total", "Profiles that could not be understood.", ["provider"]
)

MAX_BODY = 256 * 1024
BODY_CEILING = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Mirror of the SQL type aivedio.webhook_profile."""

    provider: str
    webhook: dict[str, Any]
    local: bool
    revision: int


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where a signing secret is found, and the version that is recorded when it matches."""

    reference: str
    version: str


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a provider wants to hear once its callback is stored."""

    status: int
    body: bytes
    content_type: str | None


@dataclass(frozen=True, slots=True)
class Profile:
    """
    One provider's way of calling back.

    `verifier` is None if it does not sign. `published` is where its keys are, if they are not
    secrets of ours. `challenge` names the member of a registration request that is echoed.
    """

    provider: str
    revision: int
    local: bool
    verifier: Verifier | None
    secrets: tuple[SecretReference, ...]
    published: Source | None
    audience: str | None
    challenge: str | None
    max_body: int
    content_types: frozenset[str]
    keep_headers: tuple[str, ...]
    acknowledgement: Acknowledgement

    async def keys(self, secrets: Secrets) -> Sequence[Key]:
        """Return the signing keys that our secrets stand for and that can be resolved now."""
        keys: list[Key] = []
        for secret in self.secrets:
            text = await secrets.resolve(secret.reference)
            key = self.verifier.key(secret.version, text) if text and self.verifier else None
            if key is not None:
                keys.append(key)
        return keys


class Profiles:
    """The profiles by provider name; None from `get` means there is no such provider."""

    def __init__(self) -> None:
        self._known: dict[str, Profile] = {}
        self._broken: set[str] = set()
        self.loaded = False

    def get(self, provider: str) -> Profile | None:
        """Return a provider's profile."""
        return self._known.get(provider)

    def is_broken(self, provider: str) -> bool:
        """Whether the provider exists, but no profile of it could ever be understood."""
        return provider in self._broken

    async def reload(self, db: Database) -> None:
        """Read all profiles anew."""
        self.replace(await db.rows(ProfileRow, "read_webhook_profiles"))

    def replace(self, rows: Sequence[ProfileRow]) -> None:
        """Take over what can be understood of `rows`; forget providers that are gone."""
        known: dict[str, Profile] = {}
        broken: set[str] = set()
        for row in rows:
            before = self._known.get(row.provider)
            if before is not None and before.revision == row.revision:
                known[row.provider] = before
                continue
            try:
                known[row.provider] = parse(row)
            except (KeyError, TypeError, ValueError) as error:
                BAD_PROFILES.labels(row.provider).inc()
                logger.error(
                    "profile not understood",
                    provider=row.provider,
                    revision=row.revision,
                    kept=before.revision if before else None,
                    reason=str(error),
                )
                if before is not None:
                    known[row.provider] = before
                else:
                    broken.add(row.provider)
        self._known, self._broken, self.loaded = known, broken, True


def parse(row: ProfileRow) -> Profile:
    """Return a row's profile. Raises ValueError, KeyError or TypeError if it makes no sense."""
    webhook = row.webhook
    signed = _boolean(webhook.get("signed", True), "signed")
    verifier: Verifier | None = None
    if signed:
        name = webhook["scheme"]
        if name not in SCHEMES:
            raise ValueError("unknown scheme")
        verifier = SCHEMES[name](webhook)
    challenge = webhook.get("challenge")
    audience = webhook.get("audience")
    return Profile(
        provider=row.provider,
        revision=row.revision,
        local=row.local,
        verifier=verifier,
        secrets=tuple(
            SecretReference(_text(secret["ref"], "ref"), _text(secret["version"], "version"))
            for secret in webhook.get("secrets") or ()
        ),
        published=_published(row) if verifier is not None and verifier.published else None,
        audience=None if audience is None else _text(audience, "audience"),
        challenge=None if challenge is None else _text(challenge, "challenge"),
        max_body=int(_number(webhook.get("max_body", MAX_BODY), "max_body", 1, BODY_CEILING)),
        content_types=frozenset(
            _text(kind, "content_types").lower()
            for kind in webhook.get("content_types") or ["application/json"]
        ),
        keep_headers=_kept_headers(webhook),
        acknowledgement=_acknowledgement(webhook.get("acknowledge") or {}),
    )


def _published(row: ProfileRow) -> Source:
    url = _text(row.webhook.get("jwks_url"), "jwks_url")
    schemes = ("https", "http") if row.local else ("https",)
    if not urlsplit(url).hostname or urlsplit(url).scheme not in schemes:
        raise ValueError("jwks_url must be an https address")
    return Source(row.provider, url, row.local)


def _kept_headers(webhook: Mapping[str, Any]) -> tuple[str, ...]:
    names = [_text(name, "keep_headers").lower() for name in webhook.get("keep_headers") or ()]
    event_id = webhook.get("event_id_header")
    if event_id is not None:
        names.append(_text(event_id, "event_id_header").lower())
    return tuple(dict.fromkeys(names))


def _acknowledgement(wanted: Mapping[str, Any]) -> Acknowledgement:
    status = int(_number(wanted.get("status", 204), "acknowledge.status", 200, 299))
    body = wanted.get("body")
    if status in (204, 205) and body is not None:
        raise ValueError("acknowledge: this status has no body")
    if body is None:
        return Acknowledgement(status, b"", None)
    if isinstance(body, str):
        return Acknowledgement(status, body.encode(), "text/plain; charset=utf-8")
    return Acknowledgement(status, orjson.dumps(body), "application/json")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be text")
    return value


def _boolean(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false")
    return value


def _number(value: object, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}")
    return float(value)
