"""
Questions for many at once: a reconnect storm is a storm of small questions.

One question is under way at a time. Who comes meanwhile is asked about in the next one, never in
the one under way: that may have looked before what they need to know was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

AT_ONCE = 500

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class Together(Generic[Key, Answer]):
    """Collects what is asked for single keys, and asks about all of them by `question`."""

    def __init__(
        self, question: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Answer]]]
    ) -> None:
        self._question = question
        self._waiting: dict[Key, asyncio.Future[Answer]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, key: Key) -> Answer:
        """Return the answer of a question sent after this call. Raises what that raises."""
        answer = self._waiting.get(key)
        if answer is None:
            answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        # One who gives up must not take the answer away from the others.
        return await asyncio.shield(answer)

    async def _ask(self) -> None:
        while self._waiting:
            asked = {key: self._waiting.pop(key) for key in list(self._waiting)[:AT_ONCE]}
            try:
                told = await self._question(list(asked))
                for key, answer in asked.items():
                    answer.set_result(told[key])
            except Exception as error:
                for answer in asked.values():
                    if not answer.done():
                        answer.set_exception(error)
                        answer.exception()  # whoever asked may be gone: then nobody misses it

    async def close(self) -> None:
        """End the question that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})
