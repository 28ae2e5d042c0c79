"""The one way to reach Redis, for those who publish and those who subscribe."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def client(url: str, *, answer_within: float, **options: Any) -> Redis:
    """
    Return a client that connects when it is first used.

    It tries each thing once: whoever uses it wants to know of every loss, and does the trying
    again. A peer that vanished is noticed by TCP; a Unix socket has none of that.
    """
    if not url.startswith("unix://"):
        options["socket_keepalive"] = True
    redis: Redis = Redis.from_url(
        url,
        socket_connect_timeout=answer_within,
        socket_timeout=answer_within,
        retry=Retry(NoBackoff(), 0),
        **options,
    )
    return redis
