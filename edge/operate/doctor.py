"""
`aivedio doctor`: looks at an installation from where it runs, and says what to do about it.

Every check is bounded in time and changes nothing. What only the database knows is asked of
`aivedio.checkup()`.
"""

from __future__ import annotations

import asyncio
import resource
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
from redis.exceptions import RedisError

from edge import database, errors, pubsub
from edge.database import Database
from edge.gateway.streams import HEARTBEAT_S
from edge.intake import self_check
from edge.intake.secrets import Secrets
from edge.listener import Listener

ROLE = "aivedio_operator"
# A clock that is further off refuses callbacks of providers whose own clock is wrong the other way.
SKEW_S = 5.0
# Beside its streams a gateway needs descriptors for its pool, its log and newcomers.
SPARE_DESCRIPTORS = 512
_ANSWER_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Mirror of the SQL type aivedio.checked_item; state is ok, warn or wrong."""

    subject: str
    state: Literal["ok", "warn", "wrong"]
    detail: str
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class Installation:
    """What there is to look at; None is what this installation does not have."""

    database_url: str
    redis_url: str | None = None
    bus_endpoints: tuple[str, ...] = ()
    public_url: str | None = None
    callback_url: str | None = None
    most_streams: int = 20_000
    proxy_idle_seconds: float | None = None
    encryption_at_rest: str | None = None
    local: bool = False


async def examine(installation: Installation) -> AsyncIterator[Finding]:
    """Yield the findings, as they are found: the database first, for most rests on it."""
    async with _database(installation) as db:
        answers = True
        for check in (
            _answers(db),
            _checkup(db),
            _secrets(db),
            _direct(db, installation.database_url),
        ):
            async for finding in _guarded(check):
                yield finding
                answers = answers and finding.subject != "database"
            if not answers:
                break
    if installation.redis_url is None:
        yield Finding("Redis", "wrong", "not set", "Set AIVEDIO_REDIS_URL.")
    else:
        yield await _redis(installation.redis_url)
    for endpoint in installation.bus_endpoints:
        yield await _port("RocketMQ proxy", endpoint)
    yield await _callback_url(installation)
    yield await _public_url(installation)
    yield _descriptors(installation.most_streams)
    yield _proxy(installation.proxy_idle_seconds)
    yield _encryption(installation.encryption_at_rest)


@asynccontextmanager
async def _database(installation: Installation) -> AsyncIterator[Database]:
    async with database.connect(
        installation.database_url, role=ROLE, max_size=1, acquire_timeout=_ANSWER_WITHIN
    ) as db:
        yield db


async def _guarded(check: AsyncIterator[Finding]) -> AsyncIterator[Finding]:
    """Turn a database that fails a check into a finding of its own."""
    try:
        async for finding in check:
            yield finding
    except errors.NotMigrated as error:
        yield Finding("database", "wrong", str(error), "Run aivedio migrate.")
    except errors.EdgeError as error:
        yield Finding(
            "database",
            "wrong",
            f"does not answer: {error}",
            "Check AIVEDIO_DATABASE_URL and roles.",
        )


async def _answers(db: Database) -> AsyncIterator[Finding]:
    before = time.time()
    told: Any = await db.value("echo", p_token="clock")
    after = time.time()
    skew = max(before - told.timestamp(), told.timestamp() - after, 0.0)
    if skew > SKEW_S:
        yield Finding(
            "clock", "wrong", f"{skew:.0f} s from the database's",
            "Keep both machines on time (NTP): ages of signatures and leases are compared.",
        )  # fmt: skip
    else:
        yield Finding("clock", "ok", "the same as the database's")


async def _checkup(db: Database) -> AsyncIterator[Finding]:
    for finding in await db.rows(Finding, "checkup"):
        yield finding


async def _secrets(db: Database) -> AsyncIterator[Finding]:
    """A provider without a secret is not used; one with some and not all is half set up."""
    secrets = Secrets()
    used: dict[str, dict[str, bool]] = {}
    for row in await db.rows(Reference, "secret_references"):
        there = await secrets.resolve(row.reference) is not None
        if row.required or there:
            used.setdefault(row.provider, {})[row.reference] = there
    on = sorted(provider for provider, found in used.items() if all(found.values()))
    for provider, found in sorted(used.items()):
        missing = sorted(reference for reference, it_is in found.items() if not it_is)
        if missing and len(missing) < len(found):
            yield Finding(
                f"secrets of {provider}", "wrong", f"missing here: {', '.join(missing)}",
                "Set them where the edges run, or take the others away.",
            )  # fmt: skip
    yield Finding(
        "providers", "ok" if on else "warn", f"with secrets here: {', '.join(on) or 'none'}",
        None if on else "Set the secrets of those that you have accounts with: docs/providers.md.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reference:
    """Mirror of the SQL type aivedio.secret_reference."""

    provider: str
    reference: str
    required: bool


async def _direct(db: Database, database_url: str) -> AsyncIterator[Finding]:
    """Sessions must be ours alone: a pooler in transaction mode loses LISTEN and session locks."""
    token = uuid.uuid4().hex
    listener = Listener(database_url, role=ROLE, channels=["aivedio_echo"])
    try:
        await listener.open()
        await db.value("echo", p_token=token)
        until = time.monotonic() + _ANSWER_WITHIN
        heard = False
        while not heard and time.monotonic() < until:
            notes = (await listener.wait(until - time.monotonic())).notes
            heard = any(note.payload == token for note in notes)
    finally:
        await listener.close()
    if heard:
        yield Finding("notifications", "ok", "arrive")
    else:
        yield Finding(
            "notifications", "wrong", "do not arrive",
            "Connect to the server itself, or to a pooler in session mode.",
        )  # fmt: skip


async def _redis(url: str) -> Finding:
    client = pubsub.client(url, answer_within=_ANSWER_WITHIN)
    try:
        async with client, client.pubsub() as subscription:
            channel = f"aivedio:doctor:{uuid.uuid4().hex}"
            await subscription.subscribe(channel)
            await client.publish(channel, b"heard")
            until = time.monotonic() + _ANSWER_WITHIN
            while time.monotonic() < until:
                message = await subscription.get_message(
                    ignore_subscribe_messages=True, timeout=0.5
                )
                if message is not None:
                    return Finding("Redis", "ok", "publishes to its subscribers")
    except (RedisError, OSError) as error:
        return Finding(
            "Redis",
            "wrong",
            f"does not answer ({type(error).__name__})",
            "Check AIVEDIO_REDIS_URL.",
        )
    return Finding(
        "Redis", "wrong", "a message was published and not received", "Check what stands between."
    )


async def _port(name: str, endpoint: str) -> Finding:
    subject = f"{name} {endpoint}"
    host, _, port = endpoint.rpartition(":")
    try:
        async with asyncio.timeout(_ANSWER_WITHIN):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            writer.close()
    except (TimeoutError, OSError) as error:
        return Finding(
            subject, "wrong", f"not reached ({type(error).__name__})", "Check address and firewall."
        )
    return Finding(subject, "ok", "reached")


async def _callback_url(installation: Installation) -> Finding:
    subject, url = "callback URL", installation.callback_url
    if url is None:
        return Finding(
            subject, "warn", "not set", "Set AIVEDIO_CALLBACK_URL: polls alone are slower."
        )
    if urlsplit(url).scheme != "https" and not installation.local:
        return Finding(subject, "wrong", "plain http", "Providers must reach it by https.")
    found = await self_check.check(url)
    if found == "redirects":
        return Finding(
            subject, "wrong", "answers with a redirect, which providers do not follow",
            "Set AIVEDIO_CALLBACK_URL to where it leads.",
        )  # fmt: skip
    if found == "unreachable":
        return Finding(
            subject, "warn", "not reached from here", "Make sure that it is from the outside."
        )
    return Finding(subject, "ok", "reached, without a redirect")


async def _public_url(installation: Installation) -> Finding:
    subject, url = "public URL", installation.public_url
    if url is None:
        return Finding(subject, "warn", "not set", "Set AIVEDIO_PUBLIC_URL for the gateway.")
    if urlsplit(url).scheme != "https" and not installation.local:
        return Finding(subject, "wrong", "plain http", "Session cookies need https.")
    try:
        async with httpx.AsyncClient(timeout=_ANSWER_WITHIN, trust_env=False) as client:
            answer = await client.get(f"{url}/me")
    except httpx.HTTPError as error:
        return Finding(
            subject, "warn", f"not reached from here ({type(error).__name__})",
            "Start a gateway, and make sure that browsers reach it.",
        )  # fmt: skip
    if answer.is_redirect:
        return Finding(subject, "wrong", "redirects", "Set AIVEDIO_PUBLIC_URL to where it leads.")
    if answer.headers.get("content-type") != "application/problem+json":
        return Finding(subject, "wrong", "something else answers there", "Check the proxy's route.")
    return Finding(subject, "ok", "a gateway answers")


def _descriptors(most_streams: int) -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    detail = f"{hard} allowed, {most_streams} streams"
    if hard != resource.RLIM_INFINITY and hard < most_streams + SPARE_DESCRIPTORS:
        return Finding(
            "file descriptors", "wrong", detail,
            f"Raise the hard limit to {most_streams + SPARE_DESCRIPTORS} (LimitNOFILE), or lower"
            " AIVEDIO_MOST_STREAMS.",
        )  # fmt: skip
    return Finding("file descriptors", "ok", detail)


def _proxy(idle_seconds: float | None) -> Finding:
    subject = "proxy's idle time"
    if idle_seconds is None:
        return Finding(
            subject, "warn", "not declared",
            "Set AIVEDIO_PROXY_IDLE_SECONDS to what your proxies and load balancers allow.",
        )  # fmt: skip
    if idle_seconds < 2 * HEARTBEAT_S:
        return Finding(
            subject, "wrong", f"{idle_seconds:.0f} s, with a heartbeat in {HEARTBEAT_S:.0f} s",
            f"Raise it to {3 * HEARTBEAT_S:.0f} s.",
        )  # fmt: skip
    return Finding(subject, "ok", f"{idle_seconds:.0f} s")


def _encryption(declared: str | None) -> Finding:
    if declared is None:
        return Finding(
            "encryption at rest", "warn", "not declared",
            "Payloads lie in the database: encrypt its volume and its backups, and say by what in"
            " AIVEDIO_ENCRYPTION_AT_REST.",
        )  # fmt: skip
    return Finding("encryption at rest", "ok", declared)
