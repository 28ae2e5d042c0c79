"""
Snapshots for many at once: a reset storm is a snapshot storm.

Of the same question one is being asked at a time. Who comes meanwhile shares the next one, never
the one under way: that may have looked before their own last change was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from edge.gateway import metrics

Answer = TypeVar("Answer")


class Shared(Generic[Answer]):
    """Asks a question at most once at a time, and once more for all who came meanwhile."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Answer]] = {}
        self._next: dict[Hashable, asyncio.Task[Answer]] = {}

    async def ask(self, key: Hashable, question: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer to a question that is asked after this call, and not before."""
        task = self._next.get(key)
        if task is None:
            metrics.SNAPSHOTS.labels("asked").inc()
            task = asyncio.create_task(self._run(key, question, self._running.get(key)))
            if key in self._running:
                self._next[key] = task
            else:
                self._running[key] = task
            task.add_done_callback(_seen)
        else:
            metrics.SNAPSHOTS.labels("shared").inc()
        # One who gives up must not take the answer away from the others.
        return await asyncio.shield(task)

    async def _run(
        self,
        key: Hashable,
        question: Callable[[], Awaitable[Answer]],
        before: asyncio.Task[Answer] | None,
    ) -> Answer:
        if before is not None:
            await asyncio.wait({before})
            task = self._next.pop(key)
            self._running[key] = task
        try:
            return await question()
        finally:
            if key not in self._next:
                del self._running[key]


def _seen(task: asyncio.Task[Answer]) -> None:
    if not task.cancelled():
        task.exception()
