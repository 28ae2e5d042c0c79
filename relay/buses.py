"""Which bus this installation has: pgmq in its database. The seam for another one."""

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
        # The settings refuse it before; here only so that nobody is served another bus in silence.
        raise ValueError("this version carries messages by pgmq only")
    return pgmq.connect(database_url, role=role)
