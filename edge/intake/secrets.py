"""
Secrets by reference: `env:NAME` is an environment variable, `file:/path` a file's content.

Only references are configured and stored; the values stay here, are read anew every few seconds so
that a rotated file counts without a restart, and are never logged.
"""

from __future__ import annotations

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

    def resolve(self, reference: str) -> str | None:
        """Return the secret, or None if there is none: unset, empty, unreadable or malformed."""
        now = self._clock()
        known = self._known.get(reference)
        if known is not None and now < known[0]:
            return known[1]
        value = self._read(reference) or None
        self._known[reference] = (now + self._remembered_for, value)
        return value

    def _read(self, reference: str) -> str | None:
        kind, separator, place = reference.partition(":")
        if not separator:
            return None
        if kind == "env":
            return self._environment.get(place, "").strip()
        if kind == "file" and place.startswith("/"):
            return _file(place)
        return None


def _file(path: str) -> str | None:
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
