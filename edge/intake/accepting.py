"""
Stores callbacks in batches: what arrives while a commit is on its way shares the next one.

Each caller is answered only after its own row is committed. Everything is bounded: the rows and
bytes that wait, the rows of a batch, and how long anybody waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from prometheus_client import Counter, Gauge, Histogram

from edge import errors, logs
from edge.database import Database

logger = logs.get(__name__)

QUEUED = Gauge("aivedio_callback_queue_rows", "Callbacks that wait for their commit.")
BATCH = Histogram(
    "aivedio_callback_batch_rows",
    "Callbacks stored by one commit.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
)
COMMIT = Histogram(
    "aivedio_callback_commit_seconds",
    "Time of one accept_callbacks call.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
# A failure within this many seconds leaves time for a second try: after a restart of the database
# the first call of every pooled session fails at once.
QUICK = 0.5

ALONE = Counter("aivedio_callback_batches_split_total", "Batches repeated row by row.")


@dataclass(frozen=True, slots=True)
class Received:
    """Mirror of the SQL type aivedio.received_callback."""

    ordinal: int
    provider: str
    headers: dict[str, str]
    body: str | None
    body_hash: bytes
    signature_key_version: str | None
    signed: bool
    token_hash: bytes | None
    trace_id: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Mirror of the SQL type aivedio.accepted_callback."""

    ordinal: int
    inbox_id: int | None
    is_new: bool
    is_dead: bool


class QueueFull(errors.Unavailable):
    """More callbacks wait than this process may hold."""


@dataclass(eq=False, slots=True)
class _Waiting:
    callback: Received
    size: int
    answer: asyncio.Future[Accepted | None]


class Accepting:
    """Runs `in_flight` commits at a time for any number of callers."""

    def __init__(
        self,
        db: Database,
        *,
        in_flight: int = 1,
        max_rows: int = 64,
        max_waiting: int = 2048,
        max_waiting_bytes: int = 64 * 1024 * 1024,
        answer_within: float = 5.0,
    ) -> None:
        self._db = db
        self._in_flight = in_flight
        self._max_rows = max_rows
        self._max_waiting = max_waiting
        self._max_waiting_bytes = max_waiting_bytes
        self._answer_within = answer_within
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()

    async def accept(self, callback: Received) -> Accepted | None:
        """
        Store one callback and return what became of it; None if it may not have a row.

        Raises `errors.Unavailable` if it is not known to be stored. It may be stored all the same:
        then the provider's repeat is recognised.
        """
        size = len(callback.body or "")
        if len(self._waiting) >= self._max_waiting or self._bytes + size > self._max_waiting_bytes:
            raise QueueFull("too many callbacks wait")
        answer: asyncio.Future[Accepted | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(callback, size, answer))
        self._bytes += size
        QUEUED.set(len(self._waiting))
        self._arrived.set()
        try:
            async with asyncio.timeout(self._answer_within):
                return await answer
        except TimeoutError as error:
            raise errors.TooSlow("the commit took too long") from error

    async def run(self) -> None:
        """Store what arrives, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._in_flight):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            batch = self._take()
            if batch:
                await self._settle(batch)

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        while self._waiting and len(batch) < self._max_rows:
            waiting = self._waiting.popleft()
            self._bytes -= waiting.size
            # Whoever gave up was told 503, and will come again.
            if not waiting.answer.done():
                batch.append(waiting)
        QUEUED.set(len(self._waiting))
        return batch

    async def _settle(self, batch: list[_Waiting]) -> None:
        callbacks = [waiting.callback for waiting in batch]
        try:
            accepted = await self._store_twice(callbacks)
        except errors.Unavailable as error:
            _refuse(batch, error)
        except (errors.EdgeError, psycopg.Error) as error:
            # Some row offends in a way that the function does not isolate: it alone shall suffer.
            if len(batch) == 1:
                provider = batch[0].callback.provider
                logger.error("callback cannot be stored", provider=provider, **errors.facts(error))
                _refuse(batch, errors.Unavailable("cannot be stored"))
                return
            ALONE.inc()
            for waiting in batch:
                await self._settle([waiting])
        except BaseException:
            _refuse(batch, errors.Unavailable("stopped"))
            raise
        else:
            for place, waiting in enumerate(batch):
                if not waiting.answer.done():
                    waiting.answer.set_result(accepted.get(place))

    async def _store_twice(self, callbacks: list[Received]) -> dict[int, Accepted]:
        """Store, and once more after a failure that came quickly: a repeat makes no second row."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self._store(callbacks)
        except (errors.Contended, errors.Outdated, errors.DatabaseDown):
            if loop.time() - began > QUICK:
                raise
            await self._db.recover(QUICK)
            return await self._store(callbacks)

    async def _store(self, callbacks: list[Received]) -> dict[int, Accepted]:
        BATCH.observe(len(callbacks))
        numbered = [replace(callback, ordinal=n) for n, callback in enumerate(callbacks)]
        with COMMIT.time():
            rows = await self._db.rows(Accepted, "accept_callbacks", p_callbacks=numbered)
        return {row.ordinal: row for row in rows}


def _refuse(batch: list[_Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)


COMPOSITES: dict[str, type[Any]] = {"received_callback": Received}
