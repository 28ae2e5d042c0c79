"""
`aivedio up`: everything in one go, on one machine.

    1  own the data folder
    2  PostgreSQL and Valkey from wheels, where the environment names no others
    3  migrate; point the provider profile at the pretend provider
    4  every process as a child, each ready before we say so
    5  a login link, and watch over all of it until Ctrl-C; or, with --once, the scripted run

Everything stops in the opposite order. Should this process be killed, the children notice by
themselves: nothing outlives it by more than a moment.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from edge import database, errors, logs
from edge.cli import account, embedded, folder, migrate
from edge.cli.display import Display
from edge.cli.fleet import Fleet, Part, PartFailed
from edge.cli.folder import Folder
from edge.cli.settings import Settings
from edge.cli.tree import NoTree

DEFAULT_PORT = 8080
_PROVIDER = "replicate"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line of `aivedio up` says."""

    data: Path | None
    ephemeral: bool
    port: int | None
    once: bool
    jobs: int
    faults: Literal["all", "none"]
    timeout: float


@dataclass(frozen=True, slots=True)
class _Places:
    """Where things of this run are reached."""

    database_url: str
    redis_url: str
    gateway: int
    webhook: int
    provider: int
    pretend: bool

    @property
    def public_url(self) -> str:
        return f"http://127.0.0.1:{self.gateway}"

    @property
    def provider_url(self) -> str:
        return f"http://127.0.0.1:{self.provider}"


class _Stop(Exception):
    """Somebody asked us to stop before everything was up."""


def up(options: Options, settings: Settings) -> int:
    """Run until told to stop, or once through the script; return the exit status."""
    logs.configure("up", "warning")
    display = Display()
    try:
        with _stop_on_signals():
            return _up(options, settings, display)
    except (
        account.NoAccount,
        folder.FolderUnusable,
        embedded.ServerFailed,
        migrate.CannotMigrate,
        errors.EdgeError,
        NoTree,
        PartFailed,
    ) as error:
        display.failed(f"\n{error}")
        return 1
    except (_Stop, KeyboardInterrupt):
        display.failed("Stopped.")
        return 0


def _up(options: Options, settings: Settings, display: Display) -> int:
    servers = account.for_servers()
    temporary = options.ephemeral or (options.once and options.data is None)
    path = None if temporary else options.data or folder.default_path()
    port = None if options.once else _wanted_port(options.port)
    with folder.owned(path, servers) as data:
        display.say(f"AiVedio  {'(temporary data)' if temporary else data.path}")
        with _databases(data, settings, display) as (database_url, redis_url):
            display.step("Bringing the database to this version")
            migrate.migrate(database_url, display.detail)
            pretend = options.once or settings.database_url is None
            places = _places(port, pretend, database_url, redis_url)
            status = asyncio.run(_run(options, settings, data, places, display))
        display.step("Stopping the servers")
    display.done()
    return status


@contextmanager
def _databases(data: Folder, settings: Settings, display: Display) -> Iterator[tuple[str, str]]:
    """Yield the URLs of PostgreSQL and Redis: the given ones, else of servers of our own."""
    given = settings.database_url, settings.redis_url
    urls = [url.get_secret_value() if url else "" for url in given]
    if all(urls):
        yield urls[0], urls[1]
        return
    with embedded.running(data, display.step) as servers:
        yield urls[0] or servers.database_url, urls[1] or servers.redis_url


def _places(port: int | None, pretend: bool, database_url: str, redis_url: str) -> _Places:
    gateway, webhook, provider = _free_ports(3)
    return _Places(database_url, redis_url, port or gateway, webhook, provider, pretend)


async def _run(
    options: Options, settings: Settings, data: Folder, places: _Places, display: Display
) -> int:
    stopping = asyncio.Event()
    _own_signals(stopping)
    async with (
        database.connect(places.database_url, role="aivedio_operator", max_size=1) as db,
        _pretended(db, places),
    ):
        parts = _parts(places)
        fleet = Fleet(
            parts, _environment(settings, data, places), data.logs, data.lock, display.say
        )
        try:
            display.step(f"Starting {len(parts)} processes")
            if not await _unless(stopping, fleet.start()):
                return 0
            display.done()
            if options.once:
                return await _once(options, data, places, db, fleet, stopping, display)
            await _greet(data, places, db, display)
            await _unless(stopping, fleet.tend())
            display.say("")
            return 0
        finally:
            display.step("Stopping the processes")
            await fleet.stop()


@asynccontextmanager
async def _pretended(db: database.Database, places: _Places) -> AsyncIterator[None]:
    """Point the provider's profile at the pretend provider, where there is one."""
    if not places.pretend:
        yield
        return
    from edge.pretend import provider

    await _override(db, provider.profile_override(places.provider_url))
    try:
        yield
    finally:
        # A profile that is left behind must not send real jobs to a port of this machine.
        await _override(db, {})


async def _override(db: database.Database, override: dict[str, Any]) -> None:
    await db.value(
        "override_provider",
        p_name=_PROVIDER,
        p_override=override,
        p_who="aivedio up",
        p_why="the pretend provider stands in" if override else "the pretend provider is gone",
    )


async def _once(
    options: Options,
    data: Folder,
    places: _Places,
    db: database.Database,
    fleet: Fleet,
    stopping: asyncio.Event,
    display: Display,
) -> int:
    from edge.pretend import script

    display.step(f"Running {options.jobs} jobs, faults: {options.faults}")
    play = asyncio.ensure_future(
        script.run(
            gateway_url=places.public_url,
            session=script.Session(login_url=await _login_link(data, places, db)),
            provider_url=places.provider_url,
            jobs=options.jobs,
            faults=options.faults,
            timeout_s=options.timeout,
        )
    )
    tend = asyncio.ensure_future(fleet.tend())
    told = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({play, tend, told}, return_when=asyncio.FIRST_COMPLETED)
        if tend.done():
            tend.result()
        if not play.done():
            return 130
        report = play.result()
    finally:
        for task in (play, tend, told):
            task.cancel()
    display.done()
    sys.stdout.write(json.dumps(report.as_json()) + "\n")
    sys.stdout.flush()
    for failure in report.failures:
        display.say(f"  ✗ {failure}")
    return 1 if report.failures else 0


async def _unless(stopping: asyncio.Event, work: Any) -> bool:
    """Await `work` but not past `stopping`; answer whether it came to its end."""
    task = asyncio.ensure_future(work)
    told = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
        return False
    task.result()
    return True


async def _greet(data: Folder, places: _Places, db: database.Database, display: Display) -> None:
    link = await _login_link(data, places, db)
    display.say(
        f"\n  Open  {link}\n\n  The link works once, for ten minutes. Ctrl-C stops everything."
    )
    if sys.stdout.isatty() and _has_browser():
        await asyncio.to_thread(webbrowser.open, link)


async def _login_link(data: Folder, places: _Places, db: database.Database) -> str:
    """Make a link that logs its first user in; the database keeps only its token's hash."""
    token = secrets.token_urlsafe(32)
    who = {
        "p_tenant": data.secrets.tenant_id,
        "p_project": data.secrets.project_id,
        "p_user": data.secrets.user_id,
    }
    await db.value("add_member", **who, p_role="operator")
    await db.value(
        "issue_token",
        p_purpose="login",
        p_token_hash=hashlib.sha256(token.encode()).digest(),
        **who,
        p_session=secrets.token_urlsafe(12),
        p_claims={"projects": [data.secrets.project_id]},
    )
    return f"{places.public_url}/login?token={token}"


def _has_browser() -> bool:
    return sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def _parts(places: _Places) -> list[Part]:
    """Every child, with the turn in which it stops: first what takes in work."""
    names = {"submit": 0, "poll": 0, "webhook": 1, "inbox": 2, "consume": 2, "upkeep": 2}
    names |= {"relay": 3, "dispatch": 4, "gateway": 5}
    if places.pretend:
        names |= {"pretend-provider": 0, "pretend-media": 0}
    ports = _free_ports(len(names))
    return [
        Part(name, turn, {"AIVEDIO_ADMIN_PORT": str(port)})
        for (name, turn), port in zip(names.items(), ports, strict=True)
    ]


def _environment(settings: Settings, data: Folder, places: _Places) -> dict[str, str]:
    own = {
        "AIVEDIO_DATABASE_URL": places.database_url,
        "AIVEDIO_REDIS_URL": places.redis_url,
        "AIVEDIO_PUBLIC_URL": places.public_url,
        "AIVEDIO_CALLBACK_URL": f"http://127.0.0.1:{places.webhook}",
        "AIVEDIO_GATEWAY_LISTEN": f"127.0.0.1:{places.gateway}",
        "AIVEDIO_WEBHOOK_LISTEN": f"127.0.0.1:{places.webhook}",
        "AIVEDIO_LOCAL": "true",
        "AIVEDIO_DRAIN_SECONDS": "0",
        "AIVEDIO_LOG_LEVEL": settings.log_level,
    }
    if settings.jwt_secret is None:
        own["AIVEDIO_JWT_SECRET"] = data.secrets.jwt_secret
    if places.pretend:
        own |= {
            "AIVEDIO_PRETEND_LISTEN": f"127.0.0.1:{places.provider}",
            "REPLICATE_API_TOKEN": data.secrets.provider_token,
            "REPLICATE_WEBHOOK_SECRET": data.secrets.webhook_secret,
        }
    return {**os.environ, **own}


def _free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody listens on; all are held before any is let go."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _wanted_port(port: int | None) -> int | None:
    """Return the port to show the page on; None when the usual one is taken."""
    wanted = port or DEFAULT_PORT
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            if port is None:
                return None
            raise PartFailed(f"Port {port} is in use: choose another with --port.") from None
    return wanted


@contextmanager
def _stop_on_signals() -> Iterator[None]:
    """Until the event loop takes over, SIGTERM unwinds like Ctrl-C."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _Stop

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _own_signals(stopping: asyncio.Event) -> None:
    def on_signal(number: signal.Signals) -> None:
        if stopping.is_set():
            # The children and servers see our end of their pipes close.
            os._exit(128 + number)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
