"""The HTTP server of the webhook port: limits, and then the callbacks and nothing else."""

from __future__ import annotations

from typing import Any

import uvicorn

from edge.http_server import BoundedProtocol, Server
from edge.intake.problems import encoded


class CallbackProtocol(BoundedProtocol):
    """One connection of a provider."""

    def problem(self, status: int, code: str) -> bytes:
        """Return the body of a refusal."""
        return encoded(status, code)


def server(app: Any, *, drain_within: float) -> Server:
    """Return a server for `app` that has nothing but the limits above in front of it."""
    return Server(
        uvicorn.Config(
            app,
            http=CallbackProtocol,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="error",
            proxy_headers=False,
            server_header=False,
            backlog=1024,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=max(1, round(drain_within)),
        )
    )
