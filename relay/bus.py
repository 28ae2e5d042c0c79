"""
The bus between the outbox and whoever follows a task: what every implementation promises.

    publish     at least once, in order per task, one acknowledgement per message
    subscribe   at least once per consumer group; a message that is not acknowledged comes again

The messages of one task reach a group for the first time in the order in which they were
published. A repeat may come at any later moment, after newer messages too, and with the same
event_id: consumers judge by rows in PostgreSQL and by aggregate_version, never by arrival.

`tests/py/relay/contract.py` holds the suite that each implementation passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol
from uuid import UUID

BEAT = "beat"
BEAT_KEY = UUID(int=0)


class BusDown(Exception):
    """The bus gave no answer. Nothing is known of the call's effect; make it again later."""


@dataclass(frozen=True, slots=True)
class Message:
    """
    One event on its way.

    `task_id` is the key: messages with the same one keep their order. `tag` is the task's status,
    by which groups subscribe; a message with the tag `BEAT` goes to the groups that take all.
    """

    task_id: UUID
    tag: str
    body: Mapping[str, Any]


class Fate(Enum):
    """What became of a message that was to be published."""

    SENT = "sent"
    FAILED = "failed"
    POISON = "poison"


@dataclass(frozen=True, slots=True)
class Receipt:
    """
    The answer for one message.

    SENT: the bus has acknowledged it. FAILED: it may or may not have arrived; publish it again
    later. POISON: the bus refused it for what it is, while it took others.
    """

    fate: Fate
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as a group received it. `tries` counts deliveries, this one included, roughly."""

    message: Message
    tries: int
    handle: Any


class Subscription(Protocol):
    """
    A member of a consumer group; members share the group's messages.

    A delivery is hidden from other members for `visibility` seconds. All methods may raise
    BusDown; the subscription then heals by itself and the caller tries again after a pause.
    """

    visibility: float

    async def receive(self, limit: int, within: float) -> list[Delivery]:
        """Return up to `limit` messages, oldest first; none if none came `within` seconds."""

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """End deliveries whose effect is committed. One that is gone already is no error."""

    async def retry(self, delivery: Delivery, delay: float) -> None:
        """Have the message delivered again, `delay` seconds from now."""

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Hide deliveries for another `visibility` seconds: their effect takes long."""

    async def bury(self, delivery: Delivery, error: str) -> None:
        """Make the message a dead letter, with the reason; it is not delivered again."""


class Bus(Protocol):
    """
    A connection to the bus, open for the life of a process.

    `batch_limit` is the number of messages that one `publish` should carry, `parallel` how many
    calls of it may be in flight at once.
    """

    batch_limit: int
    parallel: int

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        """
        Send messages and return a receipt for each, in their order.

        Two messages of one task are never in flight together: when one is not sent, those that
        follow it in this batch are FAILED without being tried. A caller that has two calls in
        flight keeps their tasks apart. Nothing is raised for what the bus or a message does, and
        the call ends in bounded time.
        """

    def subscribe(
        self, group: str, *, visibility: float = 30.0
    ) -> AbstractAsyncContextManager[Subscription]:
        """Join a consumer group for the length of a block; leaving it is bounded in time."""
