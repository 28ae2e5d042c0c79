"""
The reader's side of a doorbell: sleep until there is work, at no cost to the writers while awake.

A writer rings (`pg_notify`) only if it can have the bell's advisory lock, which a reader holds
while it drains. So the order of steps is what keeps work from being overlooked:

    1  LISTEN, once, committed
    2  hold the bell: writers are now silent
    3  look until a look finds nothing more
    4  release the bell, and note a transaction id
    5  look until everybody who was refused the bell is over (`bell_quiet`): their rows were
       invisible to step 3 and nobody rang for them
    6  wait for a ring, for the time that the last look asked for, or for the safety look

A ring during any step is kept and starts the next round. Bells are hints: without its connection
a reader goes on looking at every safety interval, only later than it could.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final

from prometheus_client import Counter, Gauge

from edge import errors
from edge.backoff import Backoff, pause
from edge.listener import HEARTBEAT, RECONNECTS, Listener, log_failure

# What a look answers: how many seconds until the next look is wanted. AGAIN: at once, there is
# probably more. IDLE: not before the bell rings.
Look = Callable[[], Awaitable[float | None]]
AGAIN: Final = 0.0
IDLE: Final = None

# While waiting for writers to end: the first and the longest pause between two looks.
QUIET_FIRST = 0.005
QUIET_CAP = 0.25

# A reader that loses this many races in a row is still well.
PATIENCE = 3

LOOKS = Counter(
    "aivedio_bell_looks_total", "Looks for work, by what caused the round.", ["channel", "cause"]
)
LISTENING = Gauge("aivedio_bell_listening", "1 while the reader hears its bell.", ["channel"])


class Doorbell:
    """
    Runs a reader of one channel, on one connection of its own.

    `shards` are the bells to hold; `hears` the payloads that mean this reader, by default the
    shards as text. The looks themselves use other connections.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        role: str,
        channel: str,
        shards: Sequence[int] = (0,),
        hears: Collection[str] | None = None,
        safety: tuple[float, float] = (2.0, 5.0),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._channel = channel
        self._shards = tuple(shards)
        self._hears = frozenset(hears if hears is not None else map(str, shards))
        self._safety = safety
        self._listener = Listener(conninfo, role=role, channels=[channel], settings=settings)
        self._failures = Backoff()
        self._held: list[int] = []
        self._rung = False

    def shake(self) -> None:
        """Ask for a look soon, from within this process."""
        self._listener.wake()

    async def serve(
        self,
        look: Look,
        *,
        stopping: asyncio.Event,
        ready: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """
        Call `look` whenever there may be work, one call at a time, until `stopping`.

        A look that raises is logged and repeated after a growing pause. `ready` is told whether
        looks succeed. Returns after the look in progress; never cancels one.
        """
        reconnect = Backoff(0.1, 5.0)
        stop = asyncio.create_task(self._wake_at(stopping))
        try:
            while not stopping.is_set():
                try:
                    self._held.clear()
                    await self._listener.open()
                    LISTENING.labels(self._channel).set(1)
                    cause = "open"
                    while not stopping.is_set():
                        within = await self._round(look, cause, stopping, ready)
                        reconnect.reset()
                        cause = await self._sleep(within, stopping)
                except Exception as error:
                    log_failure("doorbell interrupted", error, channel=self._channel)
                if stopping.is_set():
                    break
                # Deaf, but not blind: one round of looks between two tries to connect.
                LISTENING.labels(self._channel).set(0)
                RECONNECTS.inc()
                await self._drain(look, "deaf", stopping, ready)
                await pause(reconnect.next(), stopping)
        finally:
            stop.cancel()
            self._held.clear()
            await self._listener.close()
            LISTENING.labels(self._channel).set(0)

    async def _round(
        self, look: Look, cause: str, stopping: asyncio.Event, ready: Callable[[bool], None]
    ) -> float | None:
        """Hold, drain, release, look until all is quiet. Return what the last look asked for."""
        self._rung = False
        await self._hold()
        within = await self._drain(look, cause, stopping, ready)
        released_at = await self._release()
        pauses = Backoff(QUIET_FIRST, QUIET_CAP)
        # A reader whose looks fail looks again in any case, so it need not wait for quiet.
        while not stopping.is_set() and not self._failures.tries:
            # First ask, then look: only a look that began after the last writer ended sees its row.
            quiet = await self._quiet(released_at)
            within = await self._drain(look, "quiet", stopping, ready)
            if quiet or await self._ring(pauses.next()):
                break
        return within

    async def _drain(
        self, look: Look, cause: str, stopping: asyncio.Event, ready: Callable[[bool], None]
    ) -> float | None:
        loop = asyncio.get_running_loop()
        beaten_at = loop.time()
        while True:
            within = await self._look(look, cause, ready)
            if within != AGAIN or stopping.is_set():
                return within
            cause = "more"
            # A long drain leaves the listening session idle, and idle sessions may be ended.
            if self._held and loop.time() > beaten_at + HEARTBEAT:
                await self._listener.heartbeat()
                beaten_at = loop.time()

    async def _look(self, look: Look, cause: str, ready: Callable[[bool], None]) -> float | None:
        LOOKS.labels(self._channel, cause).inc()
        try:
            within = await look()
        except Exception as error:
            log_failure("look failed", error, channel=self._channel)
            patience = PATIENCE if isinstance(error, errors.Contended) else 0
        else:
            self._failures.reset()
            ready(True)
            return within
        if self._failures.tries >= patience:
            ready(False)
        return self._failures.next()

    async def _sleep(self, within: float | None, stopping: asyncio.Event) -> str:
        """Wait for a reason to look, and return its name."""
        safety = random.uniform(*self._safety)
        if self._failures.tries and within is not None:
            # Neither bell nor safety hurries a reader whose looks fail.
            await pause(within, stopping)
            return "failure"
        if await self._ring(safety if within is None else min(safety, within)):
            return "bell"
        return "safety" if within is None or safety < within else "asked"

    async def _ring(self, within: float) -> bool:
        """Wait for a ring that means this reader. Return whether one came in time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        while not self._rung:
            heard = await self._listener.wait(min(HEARTBEAT, max(0.0, until - loop.time())))
            self._rung = (
                heard.woken
                or heard.missed
                or any(note.payload in self._hears for note in heard.notes)
            )
            if loop.time() >= until:
                break
            if not heard.notes and not heard.woken:
                await self._listener.heartbeat()
        return self._rung

    async def _hold(self) -> None:
        missing = [shard for shard in self._shards if shard not in self._held]
        if missing:
            ((held,),) = await self._listener.rows(
                "hold_bells", p_channel=self._channel, p_shards=missing
            )
            # Refused: a peer is awake, or writers are ringing. Looking is right all the same.
            self._held += held

    async def _release(self) -> str | None:
        """Release what is held; return the transaction id after the last release."""
        if not self._held:
            return None
        ((last,),) = await self._listener.rows(
            "release_bells", p_channel=self._channel, p_shards=self._held
        )
        self._held.clear()
        return str(last)

    async def _quiet(self, released_at: str | None) -> bool:
        if released_at is None:
            return True
        ((quiet,),) = await self._listener.rows("bell_quiet", p_xid=released_at)
        return bool(quiet)

    async def _wake_at(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        self._listener.wake()
