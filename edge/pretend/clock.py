"""The provider's clock: time stamps are true, waiting can be sped up."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    """A clock on which `speed` seconds of a job's life pass in one real second."""

    def __init__(self, speed: float = 1.0) -> None:
        if not 0.01 <= speed <= 10_000:
            raise ValueError("speed must be between 0.01 and 10000")
        self.speed = speed

    @staticmethod
    def now() -> datetime:
        """Return the real time: whoever receives a signature or a time stamp compares it."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Return seconds of this clock since some fixed moment."""
        return time.monotonic() * self.speed

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this clock."""
        await asyncio.sleep(seconds / self.speed)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for `event`, at most so many seconds of this clock; answer whether it is set."""
        try:
            async with asyncio.timeout(seconds / self.speed):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True
