"""Which bus this installation has: pgmq in its database, unless RocketMQ is configured."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from relay import pgmq
from relay.bus import Bus


def publisher(
    database_url: str, rocketmq_endpoints: str | None = None
) -> AbstractAsyncContextManager[Bus]:
    """Return the bus to send to, for the length of a block."""
    return _connect(database_url, rocketmq_endpoints, role=pgmq.PUBLISHER)


def consumer(
    database_url: str, rocketmq_endpoints: str | None = None
) -> AbstractAsyncContextManager[Bus]:
    """Return the bus to subscribe to, for the length of a block."""
    return _connect(database_url, rocketmq_endpoints, role=pgmq.CONSUMER)


def _connect(
    database_url: str, rocketmq_endpoints: str | None, *, role: str
) -> AbstractAsyncContextManager[Bus]:
    if rocketmq_endpoints:
        raise NotImplementedError("this version carries messages by pgmq only")
    return pgmq.connect(database_url, role=role)
