"""
All open streams of this process: how many there may be, their heartbeats, and their ends.

    heartbeat   each stream once in 25 s, spread evenly: slot by slot of a wheel
    sweep       each second: credentials that expired, readers that have taken nothing for 30 s
    recheck     each 25 s, and when a bell says so: whose access was revoked
    drain       once, at the end: everybody is sent away, spread over the window
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time

from edge import errors, logs
from edge.backoff import pause
from edge.gateway import metrics
from edge.gateway.hubs import Hubs
from edge.gateway.places import Caps, Places
from edge.gateway.problems import Problem
from edge.gateway.store import Grant, Store
from edge.gateway.stream import Stream

logger = logs.get(__name__)

HEARTBEAT_S = 25.0
SLOTS = 1000
# Neighbours in time get slots far apart: a step without a common factor with SLOTS.
_STRIDE = 619
STALL_S = 30.0
SWEEP_S = 1.0
RECHECK_S = 25.0
GRANTS_AT_ONCE = 2000
TOLD_AT_ONCE = 256
DRAIN_TICK_S = 0.05
# A stream that is sent away comes back after so long, so that all of them do not at once.
COME_BACK_S = 2.0


class Streams:
    """Admits, keeps and ends streams."""

    def __init__(self, hubs: Hubs, store: Store, caps: Caps | None = None) -> None:
        self._hubs = hubs
        self._store = store
        self._places = Places(caps or Caps())
        self._open: set[Stream] = set()
        self._wheel: list[set[Stream]] = [set() for _ in range(SLOTS)]
        self._next_slot = random.randrange(SLOTS)
        self._doubt = asyncio.Event()
        # How often access was doubted, and whether PostgreSQL is away.
        self.doubts = 0
        self.away = False
        self._refusing = False
        self._empty = asyncio.Event()

    def __len__(self) -> int:
        """Return how many streams are open."""
        return len(self._open)

    # Coming and going

    def admit(self, grant: Grant) -> None:
        """
        Hold a place for a stream; `release` gives it back, unless `enter` took it.

        Raises `Problem` when there is none. Nobody is sent away for a newcomer.
        """
        if self._refusing:
            raise Problem("stopping", retry_after=COME_BACK_S)
        self._places.take(grant)

    def release(self, grant: Grant) -> None:
        """Give a place back."""
        self._places.give_back(grant)

    def enter(self, stream: Stream) -> None:
        """Keep a stream that has just begun, in the place held for it."""
        self._open.add(stream)
        stream.slot = self._next_slot
        self._next_slot = (self._next_slot + _STRIDE) % SLOTS
        self._wheel[stream.slot].add(stream)
        metrics.OPENED.inc()
        metrics.STREAMS.set(len(self._open))

    def gone(self, stream: Stream) -> None:
        """Forget a stream whose connection is lost."""
        if stream in self._open:
            self._open.discard(stream)
            self._wheel[stream.slot].discard(stream)
            self.release(stream.grant)
            self._hubs.rest_if_left(stream.hub)
            metrics.STREAMS.set(len(self._open))
            if not self._open:
                self._empty.set()

    def refuse(self) -> None:
        """Admit nobody any more."""
        self._refusing = True

    # What is done to them

    async def beat(self, stopping: asyncio.Event) -> None:
        """Keep the heartbeats going, until `stopping`."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        for slot in itertools.cycle(range(SLOTS)):
            due += HEARTBEAT_S / SLOTS
            late = loop.time() - due
            if late < 0 and await pause(-late, stopping):
                return
            if late > 1.0:
                due = loop.time()  # after a stall the wheel turns on; it does not race
            self._ping(slot)

    def _ping(self, slot: int) -> None:
        now = int(time.time())
        for stream in self._wheel[slot]:
            stream.ping(now)

    async def sweep(self, stopping: asyncio.Event) -> None:
        """End what has expired or stalled, until `stopping`."""
        while not await pause(SWEEP_S, stopping):
            self._end_the_overdue()
            self._hubs.tidy()

    def _end_the_overdue(self) -> None:
        now, clock = int(time.time()), time.monotonic()
        for stream in list(self._open):
            if stream.stalled_at is not None:
                if clock - stream.stalled_at > STALL_S:
                    stream.give_up("stalled")
            elif stream.expires_at <= now:
                stream.renew()

    async def recheck(self, stopping: asyncio.Event) -> None:
        """End the streams of those whose access was taken away, until `stopping`."""
        while not stopping.is_set():
            try:
                async with asyncio.timeout(RECHECK_S * random.uniform(0.9, 1.0)):
                    await self._doubt.wait()
            except TimeoutError:
                pass
            self._doubt.clear()
            try:
                await self._end_the_lost()
            except errors.EdgeError as error:
                # Streams of people who were let in outlive an outage; the next look decides.
                logger.warning("access not checked", kind=type(error).__name__, code=error.code)
                await pause(SWEEP_S, stopping)
                self._doubt.set()
            except Exception:
                logger.exception("access not checked")
                await pause(SWEEP_S, stopping)

    async def tell(self, away: bool) -> None:
        """Tell every stream whether PostgreSQL is away; who is blocked hears it afterwards."""
        self.away = away
        for number, stream in enumerate(list(self._open), 1):
            stream.tell(away=away)
            if number % TOLD_AT_ONCE == 0:
                await asyncio.sleep(0)
                if self.away != away:
                    return

    def doubt(self) -> None:
        """Ask for a recheck at once."""
        self.doubts += 1
        self._doubt.set()

    async def _end_the_lost(self) -> None:
        held = list({stream.grant for stream in self._open})
        for start in range(0, len(held), GRANTS_AT_ONCE):
            lost = await self._store.lost(held[start : start + GRANTS_AT_ONCE])
            if lost:
                logger.info("access revoked", grants=len(lost))
            for stream in [stream for stream in self._open if stream.grant in lost]:
                stream.revoke()

    async def drain(self, window: float) -> None:
        """Send everybody away within about `window` seconds; return when they are gone."""
        self.refuse()
        leaving = list(self._open)
        random.shuffle(leaving)
        ticks = max(1, int(window / DRAIN_TICK_S))
        portion = max(1, -(-len(leaving) // ticks))
        for start in range(0, len(leaving), portion):
            for stream in leaving[start : start + portion]:
                stream.drain(random.randint(200, int(1000 * (window + COME_BACK_S))))
            await asyncio.sleep(DRAIN_TICK_S)
        if self._open:
            self._empty.clear()
            await pause(1.0, self._empty)
        for stream in list(self._open):
            stream.give_up("drained")
