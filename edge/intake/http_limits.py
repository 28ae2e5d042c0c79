"""
The HTTP server of the webhook port: limits, and then the callbacks and nothing else.

What can be refused by its connection alone is refused here, before a request costs anything. Behind
a trusted proxy all connections are the proxy's; there `edge.intake.receive` judges by the address
that the proxy names.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import uvicorn
from prometheus_client import Counter as Metric

from edge.http_server import BoundedProtocol, Server
from edge.intake.flood import Flood
from edge.intake.origin import Network, peer_source
from edge.intake.problems import encoded

CONNECTIONS = Metric(
    "aivedio_callback_connections_refused_total", "Connections refused unread.", ["reason"]
)

TLS_HANDSHAKE_SECONDS = 5.0


class Gate:
    """Who is connected, and whether they may be."""

    per_source: ClassVar[int] = 500

    def __init__(self, flood: Flood, trusted: Sequence[Network]) -> None:
        self._flood = flood
        self._trusted = trusted
        self._connected: Counter[str] = Counter()

    def enter(self, host: str) -> tuple[str | None, bool]:
        """Count a connection. Return its source, None for a proxy, and whether there is room."""
        source = peer_source(host, self._trusted)
        if source is None:
            return None, True
        self._connected[source] += 1
        return source, self._connected[source] <= self.per_source

    def leave(self, source: str) -> None:
        """Forget a connection."""
        self._connected[source] -= 1
        if self._connected[source] <= 0:
            del self._connected[source]

    def shut_out(self, source: str) -> float:
        """Return the seconds that a source must wait that was refused too often."""
        return self._flood.shut_out(source)


class CallbackProtocol(BoundedProtocol):
    """One connection of a provider."""

    # More than a callback is given for its body, so that it ends with an answer where it can.
    body_within_s: ClassVar[float] = 4.0
    gate: ClassVar[Gate]

    _source: str | None = None
    _body_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let in as many connections as one source may have, and none of who is shut out."""
        super().connection_made(transport)
        self._source, has_room = self.gate.enter(self.client[0] if self.client else "")
        if not has_room:
            CONNECTIONS.labels("crowded").inc()
            self._refuse(503, "unavailable")
        self._refuse_shut_out()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self._body_came()
        if self._source is not None:
            self.gate.leave(self._source)
            self._source = None
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        """Turn away who is shut out, and give anybody else's body its time."""
        if self.cycle is None or self.cycle.response_complete:
            self._refuse_shut_out()
        super().on_headers_complete()
        self._body_came()
        if not self._refused:
            self._body_timer = self.loop.call_later(self.body_within_s, self._body_too_slow)

    def on_message_complete(self) -> None:
        """Stop the clock of the body."""
        self._body_came()
        super().on_message_complete()

    def problem(self, status: int, code: str) -> bytes:
        """Return the body of a refusal."""
        return encoded(status, code)

    def _refuse_shut_out(self) -> None:
        wait = 0.0 if self._source is None or self._refused else self.gate.shut_out(self._source)
        if wait:
            CONNECTIONS.labels("shut_out").inc()
            self._refuse(429, "too_many_requests", b"retry-after: %d\r\n" % math.ceil(wait))

    def _body_came(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _body_too_slow(self) -> None:
        self._body_timer = None
        if self.transport is not None:
            CONNECTIONS.labels("slow").inc()
            self.transport.abort()


class CallbackServer(Server):
    """Serves one bound socket, with TLS of its own where there is a context for it."""

    def __init__(self, config: uvicorn.Config, tls: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. uvicorn would give a TLS handshake a minute, uncounted by any limit."""
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                self._protocol,
                sock=listening,
                ssl=self._tls,
                ssl_handshake_timeout=TLS_HANDSHAKE_SECONDS if self._tls else None,
                backlog=self.config.backlog,
            )
            for listening in sockets or []
        ]
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        protocol = self.config.http_protocol_class
        return protocol(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


def server(
    app: Any, *, drain_within: float, gate: Gate, tls: ssl.SSLContext | None = None
) -> CallbackServer:
    """Return a server for `app` that has nothing but the limits above in front of it."""
    guarded = type("GuardedProtocol", (CallbackProtocol,), {"gate": gate})
    return CallbackServer(
        uvicorn.Config(
            app,
            http=guarded,
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
        ),
        tls,
    )
