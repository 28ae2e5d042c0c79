"""
The operators' process: it serves until it is told to stop.

PostgreSQL may go and come back: the page stays, says that the database gives no answer, and shows
numbers again once it does.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence

import uvicorn

from edge import errors, logs
from edge.backoff import Backoff, pause
from edge.console import facts
from edge.console.access import Access
from edge.console.app import Console
from edge.gateway.connection import BrowserProtocol
from edge.gateway.keys import Keys
from edge.http_server import Server
from edge.intake.origin import Network

logger = logs.get(__name__)

ENDS_WITHIN_S = 5


class HttpProtocol(BrowserProtocol):
    """A bounded connection of an operator's browser."""

    connections_at_most = 500


async def run(
    *,
    database_url: str,
    host: str,
    port: int,
    public_url: str,
    keys: Keys,
    proxies: Sequence[Network] = (),
    secure_cookie: bool = True,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """Serve until `stopping`; ready once the port is open and the database has answered."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    async with facts.connect(database_url) as known:
        access = Access(keys, known, public_url)
        console = Console(known, access, proxies, secure_cookie=secure_cookie)
        server = Server(
            uvicorn.Config(
                console.app(),
                http=HttpProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=ENDS_WITHIN_S,
            )
        )
        serving = asyncio.create_task(server.serve([listening]))
        answering = asyncio.create_task(_report(known, server, ready, stopping))
        told = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done() and not stopping.is_set():
                serving.result()
                raise RuntimeError("the server ended")
            ready(False)
            server.should_exit = True
            await asyncio.wait({serving}, timeout=ENDS_WITHIN_S + 2)
        finally:
            server.should_exit = True
            for task in (serving, answering, told):
                task.cancel()
            await asyncio.gather(serving, answering, told, return_exceptions=True)
            await keys.close()
            listening.close()


async def _report(
    known: facts.Facts,
    server: Server,
    ready: Callable[[bool], None],
    stopping: asyncio.Event,
) -> None:
    backoff = Backoff(0.1, 2.0)
    while not stopping.is_set():
        try:
            await known.bus()
        except errors.EdgeError as error:
            logger.warning("database not there yet", kind=type(error).__name__, code=error.code)
        else:
            if server.started:
                ready(True)
                return
        if await pause(backoff.next(), stopping):
            return
