"""
The webhook process (stage 10): serves `edge.intake.receive` on a port of its own.

It is ready while it knows the profiles and the database stores. A change of a profile is rung on
aivedio_control and looked for every half minute besides. On SIGTERM it takes no new connection,
finishes what is in flight and ends.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg

from edge import database, errors, logs
from edge.backoff import Backoff, pause
from edge.database import Database
from edge.http_server import Server, raise_descriptor_limit
from edge.intake import accepting, failures, http_limits, self_check
from edge.intake.accepting import Accepting
from edge.intake.failures import Failures
from edge.intake.flood import Flood
from edge.intake.http_limits import Gate
from edge.intake.jwks import Jwks
from edge.intake.origin import Network
from edge.intake.profiles import Profiles
from edge.intake.provider_http import ProviderHttp
from edge.intake.receive import Webhook
from edge.intake.secrets import Secrets
from edge.intake.tls import Certificate
from edge.intake.verifying import Verifying
from edge.listener import Listener, follow

logger = logs.get(__name__)

ROLE = "aivedio_webhook"

# Providers give up after 5 to 15 s. What is not stored well before that is answered 503.
STATEMENT_TIMEOUT = 3.0
LOCK_TIMEOUT = 2.0
ACQUIRE_TIMEOUT = 1.0
ANSWER_WITHIN = 4.5
RELOAD_EVERY = 30.0


async def run(
    *,
    database_url: str,
    listen: str,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
    trusted_proxies: Sequence[Network] = (),
    local: bool = False,
    callback_url: str | None = None,
    certificate: Certificate | None = None,
    commits_in_flight: int = 1,
    rows_per_commit: int = 64,
    drain_within: float = 8.0,
    flood: Flood | None = None,
) -> None:
    """
    Serve callbacks on `listen` (host:port) until `stopping`, then finish what is in flight.

    Ready while the profiles are known and the database stores. `callback_url` is this port as
    providers see it. With a `certificate` it speaks TLS.
    """
    raise_descriptor_limit()
    flood = flood or Flood()
    composites: dict[str, type[Any]] = {**accepting.COMPOSITES, **failures.COMPOSITES}
    with _bound(listen) as listening:
        secrets = Secrets()
        async with (
            database.connect(
                database_url,
                role=ROLE,
                max_size=commits_in_flight + 2,
                statement_timeout=STATEMENT_TIMEOUT,
                lock_timeout=LOCK_TIMEOUT,
                acquire_timeout=ACQUIRE_TIMEOUT,
                composites=composites,
            ) as db,
            ProviderHttp(secrets, reuse=False) as http,
        ):
            jwks = Jwks(http)
            profiles = Profiles()
            refusals = Failures(db)
            accept = Accepting(
                db,
                in_flight=commits_in_flight,
                max_rows=rows_per_commit,
                answer_within=ANSWER_WITHIN,
            )
            doubt = asyncio.Event()
            webhook = Webhook(
                profiles=profiles,
                verifying=Verifying(secrets, jwks),
                accept=accept,
                refusals=refusals,
                flood=flood,
                knows_token=_knows_token(db),
                public_path=urlsplit(callback_url or "").path.rstrip("/"),
                trusted_proxies=trusted_proxies,
                local=local,
                doubt=doubt.set,
            )
            server = http_limits.server(
                webhook,
                drain_within=drain_within,
                gate=Gate(flood, trusted_proxies),
                tls=certificate.context if certificate else None,
            )
            async with asyncio.TaskGroup() as group:
                background: list[asyncio.Task[Any]] = [
                    group.create_task(accept.run()),
                    group.create_task(refusals.run()),
                    group.create_task(_watch(db, profiles, doubt, stopping, ready)),
                    group.create_task(_reload_on_change(database_url, db, profiles, stopping)),
                    group.create_task(_end(server, stopping)),
                ]
                if certificate is not None:
                    background.append(group.create_task(certificate.follow(stopping)))
                if callback_url is not None:
                    background.append(group.create_task(self_check.check(callback_url)))
                await server.serve(sockets=[listening])
                for task in background:
                    task.cancel()
            await jwks.close()
            await refusals.report()


def _knows_token(db: Database) -> Callable[[str, bytes], Awaitable[bool]]:
    async def knows(provider: str, token_hash: bytes) -> bool:
        return bool(
            await db.value("knows_callback_token", p_provider=provider, p_token_hash=token_hash)
        )

    return knows


def _bound(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, int(port)))
    return listening


async def _end(server: Server, stopping: asyncio.Event) -> None:
    await stopping.wait()
    server.should_exit = True


async def _watch(
    db: Database,
    profiles: Profiles,
    doubt: asyncio.Event,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """Be ready once the database answers, and not while it is in doubt."""
    while not stopping.is_set():
        backoff = Backoff(0.2, 3.0)
        while not stopping.is_set():
            doubt.clear()
            try:
                await profiles.reload(db)
            except (errors.EdgeError, psycopg.Error) as error:
                logger.warning("database not usable", **errors.facts(error))
            else:
                break
            ready(False)
            await pause(backoff.next(), stopping)
        ready(not stopping.is_set())
        await doubt.wait()
        ready(False)


async def _reload_on_change(
    database_url: str, db: Database, profiles: Profiles, stopping: asyncio.Event
) -> None:
    async def reload() -> None:
        await profiles.reload(db)

    async def heard(note: psycopg.Notify) -> None:
        # Other things are told on this channel too; of those that name no profile none matters.
        if '"profile"' in note.payload:
            await reload()

    await follow(
        Listener(database_url, role=ROLE, channels=["aivedio_control"]),
        heard=heard,
        refresh=reload,
        stopping=stopping,
        every=RELOAD_EVERY,
    )
