"""
`aivedio topics create`: the topic and the consumer groups in a RocketMQ cluster.

They must be of the right types before the first message: events of a task keep their order only in
a topic of type FIFO. Which groups there are the database says. To make them again changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from edge import database
from edge.cli.settings import Settings
from relay.buses import Rocketmq
from relay.rocketmq_topics import ORDERLY, Admin

Say = Callable[[str], None]


def create(database_url: str, settings: Settings, say: Say) -> None:
    """
    Make what is missing on every broker that the name servers know.

    Raises `relay.rocketmq_topics.CannotCreate`, and the `errors.EdgeError` of a database that does
    not answer.
    """
    rocketmq = settings.rocketmq
    assert rocketmq is not None
    groups = asyncio.run(_groups(database_url))
    names = {rocketmq.group(name): name in ORDERLY for name in groups}
    brokers = _admin(rocketmq, settings.rocketmq_name_servers).create(rocketmq.topic, names)
    say(f"Topic {rocketmq.topic} and groups {', '.join(names)} on {', '.join(brokers)}")


async def _groups(database_url: str) -> list[str]:
    async with database.connect(database_url, role="aivedio_operator", max_size=1) as db:
        return [str(name) for name in await db.values("bus_groups")]


def _admin(rocketmq: Rocketmq, name_servers: Sequence[str]) -> Admin:
    return Admin(name_servers, rocketmq.access_key, rocketmq.secret_key)
