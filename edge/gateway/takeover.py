"""How a connection passes from uvicorn to a `Stream`."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from edge.gateway.connection import BrowserProtocol
from edge.gateway.stream import Stream

EXTENSION = "aivedio.take"


class HttpProtocol(BrowserProtocol):
    """A bounded connection, which lets an application take it over."""

    head_within_s = 15.0
    # All streams of a process may come back at once.
    connections_at_most = 20_000

    def on_message_begin(self) -> None:
        """Offer the take-over. The application removes it from the scope, or a cycle stays."""
        super().on_message_begin()
        scope: Any = self.scope
        scope["extensions"] = {EXTENSION: self.take}

    def take(self, cycle: RequestResponseCycle, stream: Stream) -> bool:
        """
        Answer the request that `cycle` stands for with `stream`, and end this protocol.

        Returns False when the client is gone already. The cycle is the one of the application's
        own `send`: with pipelined requests `self.cycle` is another one.
        """
        transport = self.transport
        if transport is None or cycle.disconnected or transport.is_closing():
            return False
        self._unset_keepalive_if_required()
        self._head_came()
        self.flow.resume_reading()
        self.connections.discard(self)
        transport.set_protocol(stream)
        stream.start(transport, cycle.scope)
        # uvicorn then takes the request for answered. The rest breaks reference cycles, so that
        # all this is freed now and not by the garbage collector.
        cycle.response_started = cycle.response_complete = True
        cycle.on_response = _nothing
        cycle.transport = cycle.flow = None  # type: ignore[assignment]
        self.pipeline.clear()
        self.cycle = self.parser = self.flow = None  # type: ignore[assignment]
        self.transport = self.scope = self.headers = None  # type: ignore[assignment]
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell uvicorn, unless the connection was taken."""
        if self.transport is not None:
            super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """Stay silent: a request to upgrade is an ordinary one here, and the application's."""


def _nothing() -> None:
    return None
