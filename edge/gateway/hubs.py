"""
Every hub of this process, and what drives them: reads, turns to write, and an end.

A turn of the event loop writes to at most `TURN` connections. Hubs take turns in portions of
`PORTION`, so a burst to thousands of connections of one project does not hold up the others.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from uuid import UUID

from edge import errors, logs
from edge.backoff import Backoff
from edge.gateway import frames, metrics
from edge.gateway.audience import Limits
from edge.gateway.hub import NOWHERE, Hub, Page, Read
from edge.gateway.store import Store, StreamHead
from edge.gateway.together import Together

logger = logs.get(__name__)

TURN = 256
PORTION = 64
# A hub without connections is kept this long: who lost a connection is back in seconds.
LINGER_S = 60.0
MOST_IDLE = 2000
# So many reads at a time; the others wait for a place.
READS_AT_ONCE = 6
# Beyond so many unwritten events of one hub the feed waits for its connections.
CONGESTED = 400

_ELSEWHERE = metrics.MESSAGES.labels("elsewhere")
_BAD = metrics.MESSAGES.labels("bad")
_EVENT = metrics.MESSAGES.labels("event")


class Hubs:
    """Finds the hub of a project and keeps it going."""

    def __init__(self, store: Store, limits: Limits | None = None) -> None:
        self._store = store
        self._limits = limits or Limits()
        self._hubs: dict[bytes, Hub] = {}
        self._idle: dict[bytes, float] = {}
        self._turns: deque[Hub] = deque()
        self._queued: set[Hub] = set()
        self._scheduled = False
        self._room = asyncio.Event()
        self._reads: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(READS_AT_ONCE)
        self._heads: Together[UUID, int] = Together(self._ask_heads)
        self._may_read = asyncio.Event()
        # What must be done for a project before it is read.
        self.before_read: Callable[[UUID], Awaitable[None]] | None = None
        self._broken: set[Hub] = set()
        self._retrying: asyncio.Task[None] | None = None
        self._opening: dict[Hub, asyncio.Future[None]] = {}
        # The largest event id that PostgreSQL named; what Redis says does not count.
        self.newest = 0

    # What comes in

    def message(self, message: bytes) -> None:
        """Take in a message from Redis."""
        hub = self._hubs.get(message[:16])
        if hub is None:
            _ELSEWHERE.inc()
            return
        try:
            event = frames.decode(message)
        except frames.BadFrame:
            _BAD.inc()
            return
        _EVENT.inc()
        hub.message(event)

    def look(self, heads: Iterable[StreamHead]) -> None:
        """Take in which streams moved."""
        for head in heads:
            self.newest = max(self.newest, head.last_event_id)
            hub = self._hubs.get(head.project_id.bytes)
            if hub is not None:
                hub.look(head.last_event_id)

    def allow_reads(self) -> None:
        """Start the reads: the subscription is confirmed, or there is none to wait for."""
        self._may_read.set()

    async def room(self) -> None:
        """Wait until no hub has far more to write than its connections have taken."""
        while self._congested():
            self._room.clear()
            await self._room.wait()

    def _congested(self) -> bool:
        return any(hub.backlog > CONGESTED for hub in self._queued)

    @property
    def watched(self) -> list[UUID]:
        """The projects that somebody follows."""
        return [hub.project for hub in self._hubs.values() if hub.followers]

    @property
    def all(self) -> list[Hub]:
        """All hubs, now."""
        return list(self._hubs.values())

    # Connections

    async def opened(self, project: UUID, cursor: int | None, within: float) -> Hub:
        """
        Return the project's hub once it knows its stream.

        Nothing may be awaited between this and `join`: only then is the hub sure to be kept.
        Raises `errors.DatabaseDown` when PostgreSQL has not answered in time.
        """
        key = project.bytes
        try:
            async with asyncio.timeout(within):
                while True:
                    hub = self._hubs.get(key) or self._add(project)
                    if hub.last is None:
                        known = self._opening.get(hub)
                        if known is None:
                            known = self._opening[hub] = asyncio.get_running_loop().create_future()
                        hub.prepare(cursor)
                        await asyncio.shield(known)
                    # Idle while it was being read, it may have been forgotten; then no message
                    # would reach it.
                    if self._hubs.get(key) is hub:
                        return hub
        except TimeoutError:
            raise errors.DatabaseDown("the stream was not read in time") from None

    def _add(self, project: UUID) -> Hub:
        hub = self._hubs[project.bytes] = Hub(project, self._ask, self._wake, self._limits)
        metrics.HUBS.set(len(self._hubs))
        self._rest(hub)
        return hub

    def rest_if_left(self, hub: Hub) -> None:
        """Note that a connection of this hub is gone."""
        if not hub.followers:
            self._rest(hub)

    def _rest(self, hub: Hub) -> None:
        key = hub.project.bytes
        if self._hubs.get(key) is hub:
            self._idle.pop(key, None)
            self._idle[key] = time.monotonic()

    def tidy(self) -> None:
        """Forget hubs that nobody has followed for a while, the longest idle first."""
        now = time.monotonic()
        for key, since in list(self._idle.items()):
            hub = self._hubs.get(key)
            if hub is None or hub.followers:
                del self._idle[key]
            elif now - since > LINGER_S or len(self._idle) > MOST_IDLE:
                del self._idle[key], self._hubs[key]
                self._opening.pop(hub, None)
                self._broken.discard(hub)
            else:
                break
        metrics.HUBS.set(len(self._hubs))

    # Writing

    def _wake(self, hub: Hub) -> None:
        if hub not in self._queued:
            self._queued.add(hub)
            self._turns.append(hub)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        budget = TURN
        while self._turns and budget > 0:
            hub = self._turns.popleft()
            self._queued.discard(hub)
            hub.flush()
            written = hub.step(min(budget, PORTION))
            metrics.DELIVERIES.inc(written)
            # A turn of a hub costs something even when nobody listens.
            budget -= max(1, written)
            if hub.unsent:
                self._queued.add(hub)
                self._turns.append(hub)
        if self._turns:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)
        self._room.set()

    # Reading

    def _ask(self, read: Read) -> None:
        task = asyncio.get_running_loop().create_task(self._read(read))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _read(self, read: Read) -> None:
        await self._may_read.wait()
        page: Page | None = None
        try:
            if self.before_read is not None:
                await self.before_read(read.hub.project)
            if read.kind == "open":
                page = await self._opened_at_head(read)
            if page is None:
                async with self._places:
                    metrics.READS.labels(read.kind).inc()
                    page = await self._store.read(read)
        except errors.EdgeError as error:
            logger.warning("read failed", kind=type(error).__name__, code=error.code)
        except Exception:
            logger.exception("read failed unexpectedly")
        if page is None:
            read.hub.failed(read)
            self._try_again(read.hub)
            return
        self.newest = max(self.newest, page.last_event_id)
        try:
            read.hub.answered(read, page)
        except Exception:
            # Whatever state that left the hub in, it must not wait for ever.
            logger.exception("hub failed at an answer")
            read.hub.collapse("mistake")
            self._try_again(read.hub)
            return
        if read.hub.last is not None and (known := self._opening.pop(read.hub, None)):
            known.set_result(None)

    async def _opened_at_head(self, read: Read) -> Page | None:
        """
        Open a hub without a read of its own, if nobody asks for what came before.

        The head alone, of one statement for many hubs, says what a read would say then (R4).
        """
        head = await self._heads.ask(read.hub.project)
        if read.cursor == NOWHERE:
            return Page(False, "ahead", head, False, [])
        return Page(True, None, head, False, []) if read.cursor == head else None

    async def _ask_heads(self, projects: Sequence[UUID]) -> dict[UUID, int]:
        metrics.READS.labels("heads").inc()
        found = {head.project_id: head.last_event_id for head in await self._store.heads(projects)}
        return {project: found.get(project, 0) for project in projects}

    def _try_again(self, hub: Hub) -> None:
        metrics.FAILED_READS.inc()
        self._broken.add(hub)
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    async def _retry(self) -> None:
        """Let hubs whose reads failed ask again: first one, and the others once one succeeded."""
        backoff = Backoff(0.1, 2.0)
        while self._broken:
            await asyncio.sleep(backoff.next())
            trying = self._broken
            if len(trying) > 1 and backoff.tries > 1:
                trying = {random.choice(tuple(trying))}
            self._broken = self._broken - trying
            for hub in trying:
                if self._hubs.get(hub.project.bytes) is hub:
                    hub.retry()
            if self._reads:
                await asyncio.wait(self._reads, timeout=5.0)
            if not trying & self._broken:
                backoff.reset()

    async def settle(self) -> bool:
        """
        Wait until what hubs ask for now was read and written; answer whether all of it was.

        Twice, since a hub asks once more after a read that had begun before (R5).
        """
        for _ in range(2):
            if self._reads:
                await asyncio.wait(set(self._reads))
        for hub in list(self._queued):
            while hub in self._queued:
                self._room.clear()
                await self._room.wait()
        return not self._broken

    async def close(self) -> None:
        """End the reads that are under way."""
        await self._heads.close()
        tasks = [*self._reads, *([self._retrying] if self._retrying else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
