"""
The ear of a gateway: Redis Pub/Sub, which may lie, stall and die at any time.

Two channels, named by the database's identity: `…:events` carries encoded events, `…:control` a
beat each second that has come through the bus like they have. Nothing depends on either: what is
lost or late here is found by `lookout`.

    confirmed   a look follows, since whatever was published before is lost
    silent      3 s without a message: ask with a ping; 2 s without an answer: connect anew
    beatless    2 s without a beat: degraded, events are late by what a look takes
    broken      connect anew, after a growing pause with jitter
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from edge import logs, pubsub
from edge.backoff import Backoff, pause
from edge.gateway import metrics
from edge.gateway.hubs import Hubs

logger = logs.get(__name__)

SILENT_S: Final = 3.0
ANSWER_S: Final = 2.0
BEATLESS_S: Final = 2.0
CONNECT_S: Final = 2.0
# After so many messages others get a turn, even when more are there already.
AT_ONCE: Final = 32
# A subscriber that waits for slow connections must not wait for ever.
CONGESTION_S: Final = 1.0


class Feed:
    """Subscribes, and keeps being subscribed; `events` is a channel of this gateway's own."""

    def __init__(
        self,
        url: str,
        database_id: str,
        hubs: Hubs,
        on_confirmed: Callable[[], None],
        events: str | None = None,
    ) -> None:
        self._client = pubsub.client(url, answer_within=CONNECT_S)
        self._events = events or f"aivedio:{database_id}:events"
        self._control = f"aivedio:{database_id}:control"
        self._hubs = hubs
        self._on_confirmed = on_confirmed
        self._beat_at = -BEATLESS_S
        self.subscribed = False

    @property
    def degraded(self) -> bool:
        """Whether events are late, because they come by looks at PostgreSQL only."""
        return time.monotonic() - self._beat_at > BEATLESS_S

    async def run(self, stopping: asyncio.Event) -> None:
        """Hand messages to the hubs, until `stopping`."""
        backoff = Backoff(0.05, 2.0)
        watch = asyncio.create_task(self._watch(stopping))
        try:
            while not stopping.is_set():
                try:
                    await self._listen(stopping, backoff)
                except (RedisError, OSError, TimeoutError) as error:
                    logger.warning("redis lost", kind=type(error).__name__)
                except Exception:
                    logger.exception("feed failed")
                self._subscribed(False)
                if not stopping.is_set():
                    await pause(backoff.next(), stopping)
        finally:
            watch.cancel()
            with suppress(RedisError, OSError):
                await self._client.aclose()

    async def _listen(self, stopping: asyncio.Event, backoff: Backoff) -> None:
        events, control = self._events.encode(), self._control.encode()
        pubsub = self._client.pubsub()
        try:
            async with asyncio.timeout(2 * CONNECT_S):
                await pubsub.subscribe(self._events, self._control)
            count = 0
            while not stopping.is_set():
                message = await self._next(pubsub)
                kind, channel = message["type"], message["channel"]
                if kind == "message" and channel == events:
                    self._hubs.message(message["data"])
                elif kind == "message" and channel == control:
                    self._beat_at = time.monotonic()
                elif kind == "subscribe" and channel == events:
                    # Also when the library reconnected by itself.
                    backoff.reset()
                    self._subscribed(True)
                    self._on_confirmed()
                count += 1
                if count % AT_ONCE == 0:
                    await self._let_others()
        finally:
            with suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    await pubsub.aclose()  # type: ignore[no-untyped-call]

    async def _next(self, pubsub: PubSub) -> dict[str, Any]:
        message: dict[str, Any] | None = await pubsub.get_message(timeout=SILENT_S)
        if message is None:
            await pubsub.ping()
            message = await pubsub.get_message(timeout=ANSWER_S)
        if message is None:
            raise TimeoutError("no answer from Redis")
        return message

    async def _let_others(self) -> None:
        await asyncio.sleep(0)
        with suppress(TimeoutError):
            async with asyncio.timeout(CONGESTION_S):
                await self._hubs.room()

    def _subscribed(self, yes: bool) -> None:
        if yes:
            metrics.SUBSCRIPTIONS.inc()
        if yes != self.subscribed:
            self.subscribed = yes
            metrics.SUBSCRIBED.set(int(yes))
            logger.info("redis subscribed" if yes else "redis not subscribed")

    async def _watch(self, stopping: asyncio.Event) -> None:
        was = None
        while not await pause(0.5, stopping):
            metrics.BEAT_AGE.set(min(3600.0, time.monotonic() - self._beat_at))
            if self.degraded != was:
                was = self.degraded
                metrics.DEGRADED.set(int(was))
                logger.info("events late" if was else "events on time")
