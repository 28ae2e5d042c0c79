"""
The consumers `media` and `billing` (stage 70): a message becomes one call of a stored function.

    media     provider_succeeded       opens the backhaul operation
    billing   submitted and terminal   reserves, settles or refunds credits

The function is idempotent by its business key, so a message may come any number of times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from edge import database
from edge.database import Database
from relay import buses
from relay.bus import Message
from relay.buses import Rocketmq
from relay.consumer import Consumer, Each, Effect

FUNCTIONS: Final = {"media": "open_media", "billing": "book_credit"}
LANES: Final = 4
BATCH: Final = 64


async def run(
    *,
    database_url: str,
    groups: Sequence[str],
    rocketmq: Rocketmq | None = None,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """
    Consume for every group in `groups` until `stopping`. Ready means that all of them are.

    Raises ValueError for a group that has no consumer here.
    """
    unknown = sorted(set(groups) - set(FUNCTIONS))
    if unknown or not groups:
        raise ValueError(f"no consumer for {', '.join(unknown) or 'no group'}")
    readiness = dict.fromkeys(groups, False)

    def ready_of(group: str) -> Callable[[bool], None]:
        def tell(now: bool) -> None:
            readiness[group] = now
            ready(all(readiness.values()))

        return tell

    async with (
        buses.consumer(database_url, rocketmq) as bus,
        database.connect(
            database_url, role="aivedio_consumer", max_size=LANES * len(readiness)
        ) as db,
        asyncio.TaskGroup() as tasks,
    ):
        for group in readiness:
            each = Each(effect_of(db, group), lanes=LANES, stopping=stopping)
            consumer = Consumer(bus, group, each, batch=BATCH)
            tasks.create_task(consumer.run(stopping, ready_of(group)))


def effect_of(db: Database, group: str) -> Effect:
    """Return the effect that a group's messages have."""
    function = FUNCTIONS[group]

    async def call(message: Message) -> None:
        await db.value(function, p_message=dict(message.body))

    return call
