"""
One direct connection that listens, and nothing else.

A notification is a hint: `Listener` keeps those that arrive at any moment, also while it executes
a statement, but a connection that breaks loses whatever was on its way. Whoever uses it therefore
looks at the facts after every `open` and every few seconds besides; `follow` does so.

The connection must reach PostgreSQL itself: a pooler in transaction mode loses LISTEN and the
session's locks.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
import structlog
from prometheus_client import Counter
from psycopg import sql

from edge import errors
from edge.backoff import Backoff, pause
from edge.database import ADAPTERS, Connection, session, statement, translated

logger = structlog.get_logger(__name__)

Result = TypeVar("Result")

RECONNECTS = Counter(
    "aivedio_listener_reconnects_total", "Listening connections that had to be made again."
)

# An idle connection is asked for a sign of life this often, in seconds.
HEARTBEAT = 3.0

# Notes kept for a reader that is busy. Past that the oldest go, and `missed` says so.
BACKLOG = 4096


def log_failure(event: str, error: Exception, **fields: object) -> None:
    """Log what a loop survives: a line for what may happen, the whole story for a defect."""
    if isinstance(error, errors.EdgeError):
        logger.warning(event, kind=type(error).__name__, code=error.code, **fields)
    else:
        logger.error(event, exc_info=error, **fields)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a wait brought. `missed`: more came than was kept, so look at everything."""

    notes: list[psycopg.Notify]
    woken: bool
    missed: bool


class Listener:
    """
    Owns one autocommit session that listens on `channels`. For one task only.

    Raises `errors.DatabaseDown` from every method once the connection is of no use; then `open`
    makes a new one.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        role: str,
        channels: Sequence[str],
        answer_within: float = 2.0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._conninfo = session(
            conninfo,
            role=role,
            statement_timeout=answer_within,
            lock_timeout=answer_within,
            settings=settings,
        )
        self._channels = tuple(channels)
        self._answer_within = answer_within
        self._connection: Connection | None = None
        self._notes: deque[psycopg.Notify] = deque(maxlen=BACKLOG)
        self._leaving: set[asyncio.Task[Any]] = set()
        self._missed = False
        self._woken = False
        self._stirred = asyncio.Event()

    async def open(self) -> None:
        """Connect and listen, bounded in time. Notes of an earlier connection are forgotten."""
        await self.close()
        self._notes.clear()
        self._missed = False
        self._connection = await self._bounded(self._connect(), within=3 * self._answer_within)

    async def close(self) -> None:
        """Leave; the server then frees the session's locks."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=0)

    async def rows(self, function: str, /, **arguments: object) -> list[tuple[Any, ...]]:
        """Call a stored function in this session, for what only this session can do."""
        query = statement(function, arguments)
        return await self._bounded(self._execute(query, arguments), within=self._answer_within)

    async def heartbeat(self) -> None:
        """Prove that the server still answers."""
        await self._bounded(self._beat(), within=self._answer_within)

    def wake(self) -> None:
        """End the present or the next `wait`."""
        self._woken = True
        self._stirred.set()

    async def wait(self, within: float) -> Heard:
        """Return what was received so far; if nothing, wait for a note, `wake` or the time."""
        self._receive()
        if not self._notes and not self._woken:
            self._stirred.clear()
            loop = asyncio.get_running_loop()
            descriptor = self._opened().pgconn.socket
            loop.add_reader(descriptor, self._stirred.set)
            try:
                async with asyncio.timeout(within):
                    await self._stirred.wait()
            except TimeoutError:
                pass
            finally:
                loop.remove_reader(descriptor)
            self._receive()
        heard = Heard(list(self._notes), self._woken, self._missed)
        self._notes.clear()
        self._woken = self._missed = False
        return heard

    def _receive(self) -> None:
        # libpq may hold bytes that the socket no longer announces (TLS), so always ask it.
        connection = self._opened()
        with translated():
            connection.pgconn.consume_input()
        while note := connection.pgconn.notifies():
            self._keep(psycopg.Notify(note.relname.decode(), note.extra.decode(), note.be_pid))

    def _keep(self, note: psycopg.Notify) -> None:
        self._missed = self._missed or len(self._notes) == BACKLOG
        self._notes.append(note)

    def _opened(self) -> Connection:
        if self._connection is None or self._connection.closed:
            raise errors.DatabaseDown("not connected")
        return self._connection

    async def _connect(self) -> Connection:
        connection = await Connection.connect(
            self._conninfo, autocommit=True, prepare_threshold=0, context=ADAPTERS
        )
        try:
            connection.add_notify_handler(self._keep)
            for channel in self._channels:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        except BaseException:
            connection.pgconn.finish()
            raise
        return connection

    async def _beat(self) -> None:
        await self._opened().execute("select 1")

    async def _execute(
        self, query: sql.Composed, arguments: Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        cursor = await self._opened().execute(query, arguments)
        return await cursor.fetchall()

    async def _bounded(self, work: Coroutine[Any, Any, Result], *, within: float) -> Result:
        """
        Await `work`, or give the connection up.

        Ending a statement on a dead connection may itself take seconds; that happens behind the
        caller's back.
        """
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=within)
        finally:
            if not task.done():
                self._abandon(task)
        if not task.done():
            raise errors.DatabaseDown("no answer in time")
        with translated():
            return task.result()

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        connection, self._connection = self._connection, None

        def left(ended: asyncio.Task[Any]) -> None:
            self._leaving.discard(ended)
            if not ended.cancelled():
                ended.exception()
            if connection is not None:
                connection.pgconn.finish()

        self._leaving.add(task)
        task.add_done_callback(left)
        task.cancel()


async def follow(
    listener: Listener,
    *,
    heard: Callable[[psycopg.Notify], Awaitable[None]],
    refresh: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
    every: float = 30.0,
) -> None:
    """
    Call `heard` for each note, and `refresh` after each connect, about `every` seconds, and
    whenever notes may have been missed, until `stopping`.

    A failure of either is logged and leads to a new connection after a growing pause.
    """
    backoff = Backoff()
    stop = asyncio.create_task(_wake_at(stopping, listener))
    try:
        while not stopping.is_set():
            try:
                await listener.open()
                await refresh()
                backoff.reset()
                await _hear(listener, heard, refresh, stopping, every)
            except Exception as error:
                log_failure("listening interrupted", error)
            if not stopping.is_set():
                RECONNECTS.inc()
                await pause(backoff.next(), stopping)
    finally:
        stop.cancel()
        await listener.close()


async def _hear(
    listener: Listener,
    heard: Callable[[psycopg.Notify], Awaitable[None]],
    refresh: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
    every: float,
) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time() + every * random.uniform(0.8, 1.2)
    while not stopping.is_set():
        # A sign of life of the connection is wanted more often than a refresh.
        news = await listener.wait(min(HEARTBEAT, max(0.0, due - loop.time())))
        for note in news.notes:
            await heard(note)
        if news.missed or loop.time() >= due:
            due = loop.time() + every * random.uniform(0.8, 1.2)
            await refresh()
        if not news.notes:
            await listener.heartbeat()


async def _wake_at(stopping: asyncio.Event, listener: Listener) -> None:
    await stopping.wait()
    listener.wake()
