"""The pretend provider: a process that speaks a real provider's HTTP API and misbehaves on order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


def profile_override(base_url: str) -> dict[str, Any]:
    """Return what `override_provider` needs to point a provider's profile at this process."""
    return {
        "base_url": base_url,
        "local": True,
        "poll": {
            "interval_s": {"submitted": [0.5, 1.0], "queued": [0.5, 1.0], "running": [0.5, 1.0]}
        },
    }


async def run(
    *,
    host: str,
    port: int,
    token: str,
    secret: str,
    speed: float = 1.0,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """
    Serve until `stopping` is set.

    `token` is the API token that callers must present, `secret` the `whsec_…` key that signs
    webhooks. `speed` divides every duration of a job: at 10 a job of 12 s takes 1.2 s.
    """
    raise NotImplementedError
