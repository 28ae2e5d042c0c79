"""How long to wait before trying again, and how to wait without missing the end."""

from __future__ import annotations

import asyncio
import random


class Backoff:
    """Doubling waits with jitter, from `first` to about `cap` seconds, until `reset`."""

    def __init__(self, first: float = 0.1, cap: float = 10.0) -> None:
        self._first = first
        self._cap = cap
        self._tries = 0

    @property
    def tries(self) -> int:
        """How many waits were handed out since the last success."""
        return self._tries

    def next(self) -> float:
        """Return the next wait in seconds."""
        # The exponent is capped too: a float overflows after a thousand failures in a row.
        wait = min(self._cap, self._first * 2.0 ** min(self._tries, 30))
        self._tries += 1
        return wait * random.uniform(0.5, 1.2)

    def reset(self) -> None:
        """Note a success."""
        self._tries = 0


async def pause(seconds: float, stopping: asyncio.Event) -> bool:
    """Wait, but not past `stopping`. Return whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return stopping.is_set()
    return True
