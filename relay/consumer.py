"""
The loop of every consumer group: receive, let the effect happen, acknowledge.

    effect done     acknowledged; a crash in between has the message delivered again
    effect failed   delivered again after a growing, jittered wait; after `max_tries` a dead letter
    effect hopeless a dead letter at once
    effect in the   another transaction was in the way, or the database slow: tried again at once,
      way of others then delivered again like a failure, but no try is counted
    outage          nothing is counted: the same batch is tried again until it works

While an effect runs its messages stay hidden. Stopping waits for the effect in progress, within a
bound; what was not acknowledged comes again.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Final
from uuid import UUID

from prometheus_client import Counter, Histogram

from edge import errors, logs
from edge.backoff import Backoff, pause
from relay.bus import BEAT, Bus, BusDown, Delivery, Message, Subscription
from relay.recent import Recent

logger = logs.get(__name__)

STOP_WITHIN: Final = 10.0
RECEIVE_WITHIN: Final = 0.5
RETRY_FIRST: Final = 0.5
RETRY_CAP: Final = 60.0
# A deadlock or a lock that is held for a moment: short, because the batch waits for it.
AT_ONCE: Final = 3
EXCUSES: Final = 10_000

OUTCOMES = Counter(
    "aivedio_consumer_messages_total",
    "Messages by what their effect came to.",
    ["group", "outcome"],
)
SECONDS = Histogram(
    "aivedio_consumer_batch_seconds",
    "Time from receiving a batch to its acknowledgement.",
    ["group"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
)
REDELIVERED = Counter(
    "aivedio_consumer_redelivered_total", "Messages that came more than once.", ["group"]
)


class Outcome(Enum):
    """What an effect came to."""

    DONE = "done"
    BUSY = "busy"
    FAILED = "failed"
    HOPELESS = "hopeless"
    LEFT = "left"


# LEFT: not tried, because the process stops. The text is for operators, never a message's value.
Result = tuple[Outcome, str]
DONE: Final[Result] = (Outcome.DONE, "")
LEFT: Final[Result] = (Outcome.LEFT, "")

Effect = Callable[[Message], Awaitable[None]]
BatchEffect = Callable[[Sequence[Message]], Awaitable[Sequence[Result]]]


class Consumer:
    """
    Runs one member of a consumer group.

    `effect` gets batches of up to `batch` messages, one batch at a time, and returns a result for
    each message in their order.
    """

    def __init__(
        self,
        bus: Bus,
        group: str,
        effect: BatchEffect,
        *,
        batch: int,
        max_tries: int = 12,
        visibility: float = 30.0,
    ) -> None:
        self._bus = bus
        self._group = group
        self._effect = effect
        self._batch = batch
        self._max_tries = max_tries
        self._visibility = visibility
        self._excuses = Excuses()

    async def run(self, stopping: asyncio.Event, ready: Callable[[bool], None]) -> None:
        """Consume until `stopping`."""
        backoff = Backoff(0.1, 5.0)
        async with self._bus.subscribe(self._group, visibility=self._visibility) as subscription:
            while not stopping.is_set():
                try:
                    deliveries = await subscription.receive(self._batch, RECEIVE_WITHIN)
                    if not stopping.is_set():
                        ready(True)
                    if deliveries:
                        with SECONDS.labels(self._group).time():
                            await self._handle(subscription, deliveries, stopping)
                    backoff.reset()
                except BusDown as error:
                    ready(False)
                    logger.warning("bus does not answer", group=self._group, error=str(error))
                    await pause(backoff.next(), stopping)

    async def _handle(
        self,
        subscription: Subscription,
        deliveries: Sequence[Delivery],
        stopping: asyncio.Event,
    ) -> None:
        REDELIVERED.labels(self._group).inc(sum(delivery.tries > 1 for delivery in deliveries))
        results = await self._bounded(subscription, deliveries, stopping)
        for outcome in Outcome:
            count = sum(result[0] is outcome for result in results)
            if count:
                OUTCOMES.labels(self._group, outcome.value).inc(count)
        judged = list(zip(deliveries, results, strict=True))
        await subscription.ack([one for one, (outcome, _) in judged if outcome is Outcome.DONE])
        for delivery, (outcome, error) in judged:
            if outcome is Outcome.LEFT:
                await subscription.retry(delivery, 0.0)
            elif outcome is Outcome.BUSY:
                excused = self._excuses.add(delivery.message)
                await subscription.retry(delivery, _retry_after(excused))
            elif outcome is Outcome.HOPELESS or (
                outcome is Outcome.FAILED and self._tries(delivery) >= self._max_tries
            ):
                logger.error(
                    "dead letter",
                    group=self._group,
                    tag=delivery.message.tag,
                    trace_id=_trace_of(delivery.message),
                    error=error,
                )
                await subscription.bury(delivery, error)
            elif outcome is Outcome.FAILED:
                await subscription.retry(delivery, _retry_after(self._tries(delivery)))

    def _tries(self, delivery: Delivery) -> int:
        return max(1, delivery.tries - self._excuses.of(delivery.message))

    async def _bounded(
        self,
        subscription: Subscription,
        deliveries: Sequence[Delivery],
        stopping: asyncio.Event,
    ) -> Sequence[Result]:
        """Run the effect, keeping its messages hidden; past the stop, only for a while."""
        work = asyncio.ensure_future(self._effect([delivery.message for delivery in deliveries]))
        stop = asyncio.create_task(stopping.wait())
        try:
            while not work.done() and not stop.done():
                await asyncio.wait(
                    {work, stop},
                    timeout=self._visibility / 2,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not work.done() and not stop.done():
                    await subscription.extend(deliveries)
            await asyncio.wait({work}, timeout=STOP_WITHIN)
        finally:
            stop.cancel()
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        if work.cancelled():
            return [LEFT] * len(deliveries)
        if error := work.exception():
            logger.error("effect failed", group=self._group, exc_info=error)
            outcome = Outcome.BUSY if isinstance(error, errors.Unavailable) else Outcome.FAILED
            return [(outcome, errors.describe(error))] * len(deliveries)
        return work.result()


class Excuses:
    """
    How often each message was delivered in vain without a fault of its own.

    The bus counts every delivery; those are taken off again. Only this process knows of them: a
    message that moves to another one may lose its excuses, and has its full tries there.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[UUID, int | None], int] = OrderedDict()

    def add(self, message: Message) -> int:
        """Note one more, and return how many there are."""
        count = self.of(message) + 1
        name = (message.task_id, _event_of(message))
        self._known[name] = count
        self._known.move_to_end(name)
        while len(self._known) > EXCUSES:
            self._known.popitem(last=False)
        return count

    def of(self, message: Message) -> int:
        """Return how many there are."""
        return self._known.get((message.task_id, _event_of(message)), 0)


class Each:
    """
    Makes a `BatchEffect` of an effect on one message: several tasks at once, each in order.

    A message whose event had its effect here before is done without repeating it.
    """

    def __init__(self, effect: Effect, *, lanes: int, stopping: asyncio.Event) -> None:
        self._effect = effect
        self._lanes = lanes
        self._stopping = stopping
        self._recent = Recent()

    async def __call__(self, messages: Sequence[Message]) -> Sequence[Result]:
        """Return a result for each message, in their order."""
        lanes: list[list[int]] = [[] for _ in range(self._lanes)]
        for place, message in enumerate(messages):
            lanes[hash(message.task_id) % self._lanes].append(place)
        results: list[Result] = [LEFT] * len(messages)

        async def work(places: Sequence[int]) -> None:
            for place in places:
                message = messages[place]
                with logs.tracing(_trace_of(message)):
                    try:
                        results[place] = await self._one(message)
                    except Exception as error:
                        # Such as a body that is no object: the others are not to blame.
                        logger.exception("effect failed", tag=message.tag)
                        results[place] = (Outcome.FAILED, errors.describe(error))

        async with asyncio.TaskGroup() as group:
            for places in lanes:
                if places:
                    group.create_task(work(places))
        return results

    async def _one(self, message: Message) -> Result:
        if message.tag == BEAT:
            return DONE
        event_id = _event_of(message)
        if event_id is not None and self._recent.knows(event_id):
            return DONE
        backoff = Backoff(0.1, 5.0)
        contended = 0
        while not self._stopping.is_set():
            try:
                await self._effect(message)
            except (errors.Contended, errors.TooSlow) as error:
                contended += 1
                if contended >= AT_ONCE or isinstance(error, errors.TooSlow):
                    # It must not hold up the others for longer.
                    return Outcome.BUSY, f"{type(error).__name__} {error.code}"
                await pause(backoff.next(), self._stopping)
            except errors.Unavailable as error:
                logger.warning(
                    "effect must wait", tag=message.tag, kind=type(error).__name__, code=error.code
                )
                await pause(backoff.next(), self._stopping)
            except errors.Rejected as error:
                return Outcome.HOPELESS, errors.describe(error)
            else:
                if event_id is not None:
                    self._recent.add(event_id)
                return DONE
        return LEFT


def _event_of(message: Message) -> int | None:
    event_id = message.body.get("event_id") if isinstance(message.body, Mapping) else None
    return event_id if isinstance(event_id, int) else None


def _trace_of(message: Message) -> str | None:
    trace = message.body.get("trace_id") if isinstance(message.body, Mapping) else None
    return trace if isinstance(trace, str) else None


def _retry_after(tries: int) -> float:
    return min(RETRY_CAP, RETRY_FIRST * 2.0 ** min(tries, 20)) * random.uniform(0.5, 1.0)
