"""
Publishing to Redis, which may be slow, hung or away: every call ends soon, and says whether it
worked.

Facts are in PostgreSQL and gateways look there too, so nothing is kept for later. After a failure
Redis is left alone for a moment: a hung server costs one timeout per moment, not one per batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

from prometheus_client import Counter, Gauge
from redis.exceptions import RedisError

from edge import logs, pubsub
from edge.backoff import Backoff
from edge.gateway import registry

logger = logs.get(__name__)

ANSWER_WITHIN: Final = 1.0

PUBLISHED = Counter(
    "aivedio_redis_published_total", "Messages for Redis by what became of them.", ["outcome"]
)
REDIS_UP = Gauge("aivedio_redis_up", "1 while Redis takes messages.")


class Route(Protocol):
    """Says where events go."""

    def publish(self, pipeline: Any, frames: Sequence[bytes]) -> None:
        """Add to a pipeline what publishes encoded events, in their order."""


class Everywhere:
    """Broadcast: one channel that every gateway listens to."""

    def __init__(self, database_id: str) -> None:
        self._channel = f"aivedio:{database_id}:events"

    def publish(self, pipeline: Any, frames: Sequence[bytes]) -> None:
        """Publish every event there."""
        for frame in frames:
            pipeline.publish(self._channel, frame)


class Directed:
    """Directed: a channel for each gateway, and events only to those that follow their project."""

    def __init__(self, database_id: str) -> None:
        self._database_id = database_id

    def publish(self, pipeline: Any, frames: Sequence[bytes]) -> None:
        """Publish every event to whoever is registered for its project at that moment."""
        registry.publish(pipeline, self._database_id, frames)


def control_channel(database_id: str) -> str:
    """Return the channel of beats."""
    return f"aivedio:{database_id}:control"


class Publisher:
    """A connection to Redis that is made, lost and made again as needed."""

    def __init__(self, url: str) -> None:
        self._redis = pubsub.client(
            url, answer_within=ANSWER_WITHIN, client_name="aivedio-dispatch", max_connections=2
        )
        self._backoff = Backoff(0.05, 2.0)
        self._closed_until = 0.0

    async def publish(
        self, route: Route, frames: Sequence[bytes], controls: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """
        Publish events by a route, then (channel, bytes) pairs, in one round trip.

        Return whether it worked.
        """
        loop = asyncio.get_running_loop()
        count = len(frames) + len(controls)
        if not count:
            return True
        if loop.time() < self._closed_until:
            PUBLISHED.labels("skipped").inc(count)
            return False
        pipeline = self._redis.pipeline(transaction=False)
        route.publish(pipeline, frames)
        for channel, message in controls:
            pipeline.publish(channel, message)
        try:
            async with asyncio.timeout(ANSWER_WITHIN * 2):
                await pipeline.execute()
        except (RedisError, OSError, TimeoutError) as error:
            self._fail(error, count)
            return False
        PUBLISHED.labels("published").inc(count)
        if self._backoff.tries:
            logger.info("redis takes messages again")
        self._backoff.reset()
        REDIS_UP.set(1)
        return True

    async def close(self) -> None:
        """Leave."""
        await self._redis.aclose()

    def _fail(self, error: Exception, count: int) -> None:
        PUBLISHED.labels("failed").inc(count)
        REDIS_UP.set(0)
        wait = self._backoff.next()
        if self._backoff.tries == 1:
            logger.warning("redis takes nothing", kind=type(error).__name__)
        self._closed_until = asyncio.get_running_loop().time() + wait
