"""
Answers that are kept for a while, so that looking costs the database little.

A question that takes long is asked seldom: its answer is kept `times` as long as it took, whoever
looks and however many they are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from edge import errors

Answer = TypeVar("Answer")


class Seldom(Generic[Answer]):
    """One question; its answer is kept for `least_s` and for `times` what it took."""

    def __init__(
        self,
        question: Callable[[], Awaitable[Answer]],
        *,
        least_s: float,
        times: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._question = question
        self._least_s = least_s
        self._times = times
        self._clock = clock
        self._asking = asyncio.Lock()
        self._until = float("-inf")
        self._answer: Answer | errors.TooSlow | None = None

    async def ask(self) -> Answer:
        """Return an answer. One that took too long is not asked for again at once, either."""
        async with self._asking:
            began = self._clock()
            if began >= self._until:
                try:
                    self._answer = await self._question()
                except errors.TooSlow as slow:
                    self._answer = slow
                took = self._clock() - began
                self._until = self._clock() + max(self._least_s, self._times * took)
            answer = self._answer
        if isinstance(answer, errors.TooSlow):
            raise answer
        assert answer is not None
        return answer
