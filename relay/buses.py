"""Which bus this installation has: RocketMQ where a cluster is named, else pgmq in its database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from relay import pgmq
from relay.bus import Bus


@dataclass(frozen=True, slots=True)
class Rocketmq:
    """
    A RocketMQ cluster: where it is, what we call things in it, and the key that opens it.

    Installations that share a cluster have prefixes of their own.
    """

    endpoints: Sequence[str]
    prefix: str = "aivedio"
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    tls: bool = False

    @property
    def topic(self) -> str:
        """The topic of all events."""
        return f"{self.prefix}_events"

    def group(self, name: str) -> str:
        """Return what a consumer group is called in the cluster."""
        return f"{self.prefix}_{name}"


def publisher(
    database_url: str, rocketmq: Rocketmq | None = None
) -> AbstractAsyncContextManager[Bus]:
    """Return the bus to send to, for the length of a block."""
    if rocketmq is None:
        return pgmq.connect(database_url, role=pgmq.PUBLISHER)
    from relay import rocketmq as adapter

    return adapter.publisher(rocketmq)


def consumer(
    database_url: str, rocketmq: Rocketmq | None = None
) -> AbstractAsyncContextManager[Bus]:
    """Return the bus to subscribe to, for the length of a block."""
    if rocketmq is None:
        return pgmq.connect(database_url, role=pgmq.CONSUMER)
    from relay import rocketmq as adapter

    return adapter.consumer(rocketmq, database_url)
