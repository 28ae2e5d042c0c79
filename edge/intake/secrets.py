"""
Secrets by reference: `env:NAME` is an environment variable, `file:/path` a file's content.

Only references are configured and stored; the values stay here, are read anew every few seconds so
that a rotated file counts without a restart, and are never logged. Files are read in a thread: one
on a network that hangs must not hold up everybody else.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping

# A longer file is not a secret but a mistake.
MAX_BYTES = 65_536


class Secrets:
    """Resolves references and remembers the answers for a short while."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        remembered_for: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._remembered_for = remembered_for
        self._clock = clock
        self._known: dict[str, tuple[float, str | None]] = {}
        self._reading: dict[str, asyncio.Task[str | None]] = {}

    async def resolve(self, reference: str) -> str | None:
        """Return the secret, or None if there is none: unset, empty, unreadable or malformed."""
        known = self._known.get(reference)
        if known is not None and self._clock() < known[0]:
            return known[1]
        kind, _, place = reference.partition(":")
        if kind == "env":
            return self._remember(reference, self._environment.get(place, "").strip())
        if kind == "file" and place.startswith("/"):
            return await self._file(reference, place)
        return None

    async def _file(self, reference: str, path: str) -> str | None:
        """Return a file's content; all who ask meanwhile wait for the same reading."""
        reading = self._reading.get(reference)
        if reading is None:
            reading = asyncio.create_task(asyncio.to_thread(_read, path))
            self._reading[reference] = reading
            reading.add_done_callback(lambda _: self._reading.pop(reference, None))
        # Whoever gives up waiting must not take the reading away from the others.
        return self._remember(reference, await asyncio.shield(reading))

    def _remember(self, reference: str, value: str | None) -> str | None:
        self._known[reference] = (self._clock() + self._remembered_for, value or None)
        return value or None


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    if len(content) > MAX_BYTES:
        return None
    try:
        return content.decode().strip()
    except UnicodeDecodeError:
        return None
