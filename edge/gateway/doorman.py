"""
Whether newcomers may come in, asked for many at once: a reconnect storm is a storm of questions.

One question is under way at a time. Who comes meanwhile is asked about in the next one, never in
the one under way: that may have looked before their access was given, or taken away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from edge.gateway.store import Grant

AT_ONCE = 500

Ask = Callable[[Sequence[Grant]], Awaitable[set[Grant]]]


class Doorman:
    """Asks PostgreSQL which of the waiting have no access, by `lost`."""

    def __init__(self, lost: Ask) -> None:
        self._lost = lost
        self._waiting: dict[Grant, asyncio.Future[bool]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def admits(self, grant: Grant) -> bool:
        """Return whether the grant holds. Raises what the question raises."""
        answer = self._waiting.get(grant)
        if answer is None:
            answer = self._waiting[grant] = asyncio.get_running_loop().create_future()
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        # One who gives up must not take the answer away from the others.
        return await asyncio.shield(answer)

    async def _ask(self) -> None:
        while self._waiting:
            asked = {grant: self._waiting.pop(grant) for grant in list(self._waiting)[:AT_ONCE]}
            try:
                lost = await self._lost(list(asked))
            except Exception as error:
                for answer in asked.values():
                    answer.set_exception(error)
                    answer.exception()  # whoever asked may be gone: then nobody misses it
            else:
                for grant, answer in asked.items():
                    answer.set_result(grant not in lost)

    async def close(self) -> None:
        """End the question that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})
