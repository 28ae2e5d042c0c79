"""
`aivedio up`: everything in one go, on one machine.

    1  own the data folder
    2  PostgreSQL and Valkey from wheels, where the environment names no others
    3  migrate; make the topic where RocketMQ is the bus; point the provider's profile at the
       pretend provider
    4  every process as a child, each ready before we say so
    5  a login link, and watch over all of it until Ctrl-C; or, with --once, the scripted run

Everything stops in the opposite order. Should this process be killed, the children and servers
notice by themselves: nothing outlives it by more than a moment.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psycopg

from edge import errors, logs
from edge.cli import account, embedded, folder, layout, migrate, topics
from edge.cli.display import Display
from edge.cli.fleet import PartFailed
from edge.cli.folder import Folder
from edge.cli.session import Options, Session
from edge.cli.settings import Settings
from edge.cli.tree import NoTree
from relay.rocketmq_topics import CannotCreate

_EXPECTED = (
    account.NoAccount,
    folder.FolderUnusable,
    embedded.ServerFailed,
    layout.PortTaken,
    migrate.CannotMigrate,
    CannotCreate,
    NoTree,
    PartFailed,
    errors.EdgeError,
    psycopg.OperationalError,
)


class _Stop(Exception):
    """Somebody asked us to stop before everything was up."""


def up(options: Options, settings: Settings) -> int:
    """Run until told to stop, or once through the script; return the exit status."""
    logs.configure("up", "warning")
    display = Display()
    try:
        with _stop_on_signals():
            return _up(options, settings, display)
    except _EXPECTED as error:
        display.broke()
        display.say(f"\n{error}")
        return 1
    except (_Stop, KeyboardInterrupt):
        display.broke()
        display.say("Stopped.")
        return 0


def _up(options: Options, settings: Settings, display: Display) -> int:
    temporary = options.ephemeral or (options.once and options.data is None)
    path = None if temporary else options.data or folder.default_path()
    layout.page_port(options.port)  # a port that is taken is said before anything starts
    with folder.owned(path, account.for_servers()) as data:
        display.say(f"AiVedio  {'(temporary data)' if temporary else data.path}")
        with _databases(data, settings, display) as (database_url, redis_url, servers):
            display.step("Bringing the database to this version")
            migrate.migrate(database_url, display.detail)
            if settings.rocketmq and settings.rocketmq_name_servers:
                display.step("Making the topic in RocketMQ")
                topics.create(database_url, settings, display.detail)
            pretend = options.once or settings.database_url is None
            # Chosen as late as possible: another `up` may have taken it meanwhile.
            port = None if options.once else layout.page_port(options.port)
            with layout.places(port, pretend, database_url, redis_url) as where:
                session = Session(options, data, where, servers, display)
                return asyncio.run(session.run(settings))


@contextmanager
def _databases(
    data: Folder, settings: Settings, display: Display
) -> Iterator[tuple[str, str, embedded.Servers | None]]:
    """Yield the URLs of PostgreSQL and Redis: the given ones, else of servers of our own."""
    given = [url and url.get_secret_value() for url in (settings.database_url, settings.redis_url)]
    database_url, redis_url = given
    if database_url and redis_url:
        yield database_url, redis_url, None
        return
    with embedded.running(data, display.step) as servers:
        try:
            yield database_url or servers.database_url, redis_url or servers.redis_url, servers
        except BaseException:
            display.broke()
            raise
        finally:
            display.step("Stopping the servers")
    display.done()


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
