"""The pretend media plane: it fetches, checks, transcodes and publishes, and tells the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def run(
    *,
    database_url: str,
    worker: str,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
    concurrency: int = 4,
    step_s: float = 0.2,
) -> None:
    """
    Claim and do media operations until `stopping` is set.

    `step_s` is the time between two progress reports of an operation; an operation makes a
    handful of them.
    """
    raise NotImplementedError
