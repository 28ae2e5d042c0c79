"""
The dispatcher (group `dispatcher`): from the bus to Redis, where gateways listen.

A message becomes a frame by the one encoder and is published; Redis being away is counted and
the message acknowledged all the same, since every fact is in PostgreSQL. An event that this
process published a moment ago is dropped. A beat that was fast enough goes to the control channel:
it proves the path from the relay to the gateway, so a late one must not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import orjson
import psycopg
from prometheus_client import Counter

from edge import database, errors, logs
from edge.backoff import Backoff, pause
from edge.gateway.frames import BadFrame, encode
from relay import buses
from relay.broadcast import Directed, Everywhere, Publisher, Route, control_channel
from relay.bus import BEAT, Message
from relay.buses import Rocketmq
from relay.consumer import DONE, Consumer, Outcome, Result
from relay.recent import Recent

logger = logs.get(__name__)

BATCH: Final = 500
# Clocks of relay and dispatcher may differ by part of this.
BEAT_MAX_AGE: Final = 5.0

BEATS = Counter("aivedio_dispatch_beats_total", "Beats by what became of them.", ["outcome"])
REPEATS = Counter("aivedio_dispatch_repeats_total", "Events dropped: published a moment ago.")


async def run(
    *,
    database_url: str,
    redis_url: str,
    rocketmq: Rocketmq | None = None,
    directed: bool = False,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """
    Dispatch until `stopping`, to every gateway or, `directed`, to those that follow a project.

    Dispatchers and gateways must agree on it.
    """
    database_id = await _database_id(database_url, stopping)
    if database_id is None:
        return
    publisher = Publisher(redis_url)
    try:
        async with buses.consumer(database_url, rocketmq) as bus:
            route = Directed(database_id) if directed else Everywhere(database_id)
            dispatcher = Dispatcher(publisher, route, control_channel(database_id))
            consumer = Consumer(bus, "dispatcher", dispatcher.dispatch, batch=BATCH)
            await consumer.run(stopping, ready)
    finally:
        await publisher.close()


class Dispatcher:
    """Turns batches of bus messages into Redis messages."""

    def __init__(self, publisher: Publisher, route: Route, control: str) -> None:
        self._publisher = publisher
        self._route = route
        self._control = control
        self._recent = Recent()

    async def dispatch(self, messages: Sequence[Message]) -> Sequence[Result]:
        """Publish a batch in its order; only a body that is no event's is not done."""
        out: list[bytes] = []
        published: set[int] = set()
        beat: Message | None = None
        results: list[Result] = []
        for message in messages:
            if message.tag == BEAT:
                beat = message
            else:
                try:
                    self._encode(message, out, published)
                except BadFrame as error:
                    results.append((Outcome.HOPELESS, f"BadFrame: {error}"))
                    continue
            results.append(DONE)
        beats = []
        if beat is not None and self._is_fresh(beat):
            beats.append((self._control, orjson.dumps(beat.body)))
        if await self._publisher.publish(self._route, out, beats):
            for event_id in published:
                self._recent.add(event_id)
        return results

    def _encode(self, message: Message, out: list[bytes], published: set[int]) -> None:
        frame = encode(message.body)
        event_id: int = message.body["event_id"]
        if event_id in published or self._recent.knows(event_id):
            REPEATS.inc()
            return
        out.append(frame)
        published.add(event_id)

    @staticmethod
    def _is_fresh(beat: Message) -> bool:
        sent_at = beat.body.get("sent_at")
        fresh = isinstance(sent_at, float | int) and time.time() - sent_at < BEAT_MAX_AGE
        BEATS.labels("forwarded" if fresh else "late").inc()
        return fresh


async def _database_id(database_url: str, stopping: asyncio.Event) -> str | None:
    """Return the name that channels carry, as soon as the database tells it; None on a stop."""
    backoff = Backoff()
    async with database.connect(database_url, role="aivedio_consumer", max_size=1) as db:
        while not stopping.is_set():
            try:
                return str(await db.value("database_id"))
            except (errors.EdgeError, psycopg.Error) as error:
                logger.warning("database not reached", kind=type(error).__name__)
                await pause(backoff.next(), stopping)
    return None
