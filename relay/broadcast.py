"""
Publishing to Redis, which may be slow, hung or away: every call ends soon, and says whether it
worked.

Facts are in PostgreSQL and gateways look there too, so nothing is kept for later. After a failure
Redis is left alone for a moment: a hung server costs one timeout per moment, not one per batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from prometheus_client import Counter, Gauge
from redis.exceptions import RedisError

from edge import logs, pubsub
from edge.backoff import Backoff

logger = logs.get(__name__)

ANSWER_WITHIN: Final = 1.0

PUBLISHED = Counter(
    "aivedio_redis_published_total", "Messages for Redis by what became of them.", ["outcome"]
)
REDIS_UP = Gauge("aivedio_redis_up", "1 while Redis takes messages.")


class Route(Protocol):
    """Says which channels a project's events go to."""

    def channels(self, project: bytes) -> Sequence[str]:
        """Return the channels for a project, given by the 16 bytes of its UUID."""


class Everywhere:
    """Broadcast: one channel that every gateway listens to."""

    def __init__(self, database_id: str) -> None:
        self._channels = (f"aivedio:{database_id}:events",)

    def channels(self, project: bytes) -> Sequence[str]:
        """Return the one channel."""
        return self._channels


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

    async def publish(self, messages: Sequence[tuple[str, bytes]]) -> bool:
        """Publish (channel, bytes) pairs in order, in one round trip; return whether it worked."""
        loop = asyncio.get_running_loop()
        if not messages:
            return True
        if loop.time() < self._closed_until:
            PUBLISHED.labels("skipped").inc(len(messages))
            return False
        pipeline = self._redis.pipeline(transaction=False)
        for channel, message in messages:
            pipeline.publish(channel, message)
        try:
            async with asyncio.timeout(ANSWER_WITHIN * 2):
                await pipeline.execute()
        except (RedisError, OSError, TimeoutError) as error:
            self._fail(error, len(messages))
            return False
        PUBLISHED.labels("published").inc(len(messages))
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
