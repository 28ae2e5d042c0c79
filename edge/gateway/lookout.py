"""
The eye of a gateway: it asks PostgreSQL which streams moved, whatever Redis says.

    moved     each second: projects with events past the largest id that was known 2 s before,
              since ids become visible out of order across projects; one cheap question
    compared  each 10 s, in slices: the heads of this process's own hubs, exactly, for what a
              transaction of more than 2 s kept from the window
    at once   both, after a confirmed subscription and after the event loop stood still
    away      3 s without an answer: nobody knows what is missing, and every stream is told so;
              told again once all heads were compared and what was missing has been written

So a browser is never later than about 2 s, with bus and Redis both dead, or knows that it may be.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable

from edge import errors, logs
from edge.backoff import pause
from edge.gateway import metrics
from edge.gateway.hub import NOWHERE, Hub
from edge.gateway.hubs import Hubs
from edge.gateway.store import Store

logger = logs.get(__name__)

EVERY_S = 1.0
WINDOW_S = 2.0
COMPARE_S = 10.0
SLICE = 500
WATCH_S = 30.0
TICK_S = 0.1
STALL_S = 1.0
AWAY_S = 3.0


class Lookout:
    """
    Looks, regularly and when something suggests it.

    `tell` is told whether PostgreSQL is away.
    """

    def __init__(self, hubs: Hubs, store: Store, tell: Callable[[bool], Awaitable[None]]) -> None:
        self._hubs = hubs
        self._store = store
        self._tell = tell
        self._answered_at = time.monotonic()
        self._away = False
        self._doubt = asyncio.Event()
        # (when, the largest id known then), oldest first.
        self._known: deque[tuple[float, int]] = deque()

    def look(self) -> None:
        """Ask for a look at once."""
        self._doubt.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Look until `stopping`."""
        compare_at = watch_at = 0.0
        while not stopping.is_set():
            doubted = await self._wait()
            now = time.monotonic()
            try:
                await self._moved(now)
                if doubted or self._away or now >= compare_at:
                    compare_at = now + COMPARE_S * random.uniform(0.9, 1.1)
                    await self._compare()
                if now >= watch_at:
                    watch_at = now + WATCH_S * random.uniform(0.8, 1.0)
                    await self._watch()
                if self._away:
                    await self._return()
            except errors.EdgeError as error:
                metrics.LOOKS.labels("any", "failed").inc()
                logger.warning("look failed", kind=type(error).__name__, code=error.code)
                compare_at = 0.0  # once it answers again, exactly
            except Exception:
                # Whatever is wrong with one look, streams are late without the next.
                metrics.LOOKS.labels("any", "failed").inc()
                logger.exception("look failed unexpectedly")

    async def _wait(self) -> bool:
        try:
            async with asyncio.timeout(EVERY_S * random.uniform(0.9, 1.1)):
                await self._doubt.wait()
        except TimeoutError:
            return False
        self._doubt.clear()
        return True

    async def _moved(self, now: float) -> None:
        since = self._since(now)
        if not since:
            await self._compare()  # nothing is known yet that a window could start from
        self._hubs.look(await self._store.moved(since or NOWHERE))
        self._answered_at = time.monotonic()
        metrics.LOOKS.labels("moved", "ok").inc()
        if self._hubs.newest:
            self._known.append((time.monotonic(), self._hubs.newest))

    def _since(self, now: float) -> int:
        """Return the newest id that was known at least `WINDOW_S` ago, 0 if none was."""
        while len(self._known) > 1 and self._known[1][0] <= now - WINDOW_S:
            self._known.popleft()
        if self._known and self._known[0][0] <= now - WINDOW_S:
            return self._known[0][1]
        return 0

    async def _compare(self) -> None:
        hubs = self._hubs.all
        for start in range(0, len(hubs), SLICE):
            await self._compare_slice(hubs[start : start + SLICE])
            metrics.LOOKS.labels("compared", "ok").inc()

    async def _compare_slice(self, hubs: list[Hub]) -> None:
        then = {hub.project: (hub, hub.last) for hub in hubs}
        found = {head.project_id: head for head in await self._store.heads(list(then))}
        self._answered_at = time.monotonic()
        for project, (hub, last) in then.items():
            head = found.get(project)
            if last is not None:
                hub.look(head.last_event_id if head else 0, last)

    async def _watch(self) -> None:
        watched = self._hubs.watched
        for start in range(0, len(watched), SLICE):
            await self._store.watch(watched[start : start + SLICE])

    async def mind_the_silence(self, stopping: asyncio.Event) -> None:
        """Notice when PostgreSQL answers no more, also while a question to it hangs."""
        while not await pause(TICK_S, stopping):
            if not self._away and time.monotonic() - self._answered_at > AWAY_S:
                self._away = True
                metrics.AWAY.set(1)
                logger.warning("database away")
                await self._tell(True)

    async def _return(self) -> None:
        """Say that PostgreSQL is back, once nothing is missing any more."""
        if await self._hubs.settle():
            self._away = False
            metrics.AWAY.set(0)
            logger.info("database back")
            await self._tell(False)

    async def mind_the_loop(self, stopping: asyncio.Event) -> None:
        """Notice when the event loop stood still: messages may have been lost meanwhile."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_S
            if await pause(TICK_S, stopping):
                return
            late = loop.time() - due
            metrics.LOOP_LAG.observe(max(0.0, late))
            if late > STALL_S:
                metrics.STALLS.inc()
                logger.warning("event loop stood still", seconds=round(late, 3))
                self.look()
