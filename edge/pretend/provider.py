"""
The pretend provider: a process that speaks a real provider's HTTP API and misbehaves on order.

One port serves the dialect's API, the files of finished jobs, and /pretend/, where a script
reads what was done. It keeps nothing on disk and remembers a bounded number of jobs.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.http_server import Server
from edge.pretend import control, files
from edge.pretend.clock import Clock
from edge.pretend.dialects import DIALECTS
from edge.pretend.dialects.common import Account, Dialect
from edge.pretend.studio import HangUp, Studio, open_studio

MAX_JOBS = 10_000
MAX_BODY = 1024 * 1024
STOP_S = 5.0


def profile_override(base_url: str) -> dict[str, Any]:
    """Return what `override_provider` needs to point a provider's profile at this process."""
    return {
        "base_url": base_url,
        "local": True,
        "poll": {
            "interval_s": {"submitted": [0.5, 1.0], "queued": [0.5, 1.0], "running": [0.5, 1.0]}
        },
    }


def build(studio: Studio, dialect: Dialect) -> ASGIApp:
    """Return the application: the dialect over the studio, its files, and the control routes."""
    routes = [
        *control.routes(studio),
        *files.routes(studio, dialect.file_lifetime_s),
        # Last: some dialects take any path.
        *dialect.routes(studio),
    ]
    app = Starlette(routes=routes, exception_handlers={HangUp: _hang_up})
    return _Breakable(_Limited(app))


async def run(
    *,
    host: str,
    port: int,
    token: str,
    secret: str,
    dialect: str = "replicate",
    endpoint: str | None = None,
    speed: float = 1.0,
    max_jobs: int = MAX_JOBS,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """
    Serve until `stopping` is set.

    `token` is the API token that callers must present, `secret` the key that signs webhooks as the
    provider shows it, `endpoint` where callbacks go that are the account's. `speed` divides every
    duration of a job: at 10 a job of 12 s takes 1.2 s.
    """
    await serve(
        host=host,
        port=port,
        dialect=DIALECTS[dialect](Account(token, secret, endpoint)),
        speed=speed,
        max_jobs=max_jobs,
        stopping=stopping,
        ready=ready,
    )


async def serve(
    *,
    host: str,
    port: int,
    dialect: Dialect,
    speed: float = 1.0,
    max_jobs: int = MAX_JOBS,
    opened: Callable[[Studio], None] = lambda studio: None,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """Serve a dialect until `stopping`; `opened` gets the studio of all its jobs."""
    async with open_studio(dialect, Clock(speed), max_jobs) as studio:
        opened(studio)
        config = uvicorn.Config(
            build(studio, dialect),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        with socket.create_server((host, port), backlog=512) as listener:
            server = _Server(config, lambda: ready(True))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            stopper = asyncio.create_task(_stop_with(server, stopping))
            try:
                await serving
            finally:
                stopper.cancel()
                server.should_exit = True
                await asyncio.wait({serving}, timeout=STOP_S)


class _Server(Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()


async def _stop_with(server: uvicorn.Server, stopping: asyncio.Event) -> None:
    await stopping.wait()
    server.should_exit = True


class _Breakable:
    """
    Give handlers a way to break the connection: `scope["hang_up"]`.

    uvicorn's `send` belongs to the object that holds the transport. Closing that flushes what was
    written; whatever the handler says afterwards is swallowed here.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = False

        def hang_up() -> None:
            nonlocal gone
            gone = True
            getattr(send, "__self__").transport.close()  # noqa: B009

        async def send_unless_gone(message: Message) -> None:
            if not gone:
                await send(message)

        scope["hang_up"] = hang_up
        await self._app(scope, receive, send_unless_gone)


async def _hang_up(request: Request, _reason: Exception) -> Response:
    request.scope["hang_up"]()
    return Response()


class _Limited:
    """Answer 413 to bodies that no submission needs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                raise HTTPException(413)
            return message

        await self._app(scope, limited, send)
