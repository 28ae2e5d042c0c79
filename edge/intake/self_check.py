"""Whether the address that providers are given leads here, and not to a redirect."""

from __future__ import annotations

import asyncio
import ssl
from typing import Literal

import httpx
from prometheus_client import Gauge

from edge import logs
from edge.backoff import Backoff

logger = logs.get(__name__)

Found = Literal["reached", "redirects", "unreachable"]

REACHED = Gauge(
    "aivedio_callback_url_ok", "Whether the callback URL answered without a redirect at the start."
)

SECONDS = 10.0


async def check(callback_url: str, tls: ssl.SSLContext | None = None) -> Found:
    """
    Ask for our own callback address, as a provider would, and say what was found.

    Providers follow no redirects and mostly do not tell: a callback URL that redirects loses every
    callback, and looks like a provider that never calls.
    """
    client = httpx.AsyncClient(follow_redirects=False, trust_env=False, verify=tls or True)
    async with client:
        status = await _status(client, f"{callback_url}/callbacks/self-check")
    if status is None:
        REACHED.set(0)
        # Not every network lets a host reach its own public address.
        logger.warning("callback URL not reached from here")
        return "unreachable"
    if 300 <= status < 400:
        REACHED.set(0)
        logger.error(
            "callback URL redirects, and providers follow no redirects: set AIVEDIO_CALLBACK_URL"
            " to the address that it leads to",
            status=status,
        )
        return "redirects"
    REACHED.set(1)
    return "reached"


async def _status(client: httpx.AsyncClient, url: str) -> int | None:
    """Return what the address answers, or None; what is between may be starting as we are."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + SECONDS
    backoff = Backoff(0.1, 2.0)
    while True:
        try:
            return (await client.get(url)).status_code
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
            wait = backoff.next()
            if loop.time() + wait > give_up_at:
                return None
            await asyncio.sleep(wait)
