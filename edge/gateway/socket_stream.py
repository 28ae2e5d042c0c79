"""
WebSocket, the language of streams for clients that also have something to say.

The same things are said in the same order as in an event stream, each as one text message:

    {"type":"ready","cursor":c,"retry_ms":n}
    {"type":"reset","reason":r,"cursor":c,"retry_ms":n}
    {"type":"task.status","event_id":e,"task_id":t,"task_version":v,"payload":{…},"prev":p}
    {"type":"status","database":"away"}
    {"type":"ping","time":unix}        with a ping frame before it, which the client answers
    {"type":"reply","request_id":r,…}  to what the client said (`commands`)

Close codes tell the client what to do:

    1000   it said good-bye itself
    1002, 1003, 1007, 1008, 1009   it broke the protocol or a limit: mend the client
    1012   the server restarts: come back after as many milliseconds as the reason says
    4401   its credential expired: come back with a new one
    4403   its access was taken away: ask before coming back
    1006, that is no close frame at all: come back with the cursor, after `retry_ms`

Only this object writes to the transport. While it is blocked it reads nothing either, so whoever
does not listen is not answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edge.gateway import websocket
from edge.gateway.audience import Batch
from edge.gateway.hub import Hub
from edge.gateway.store import Grant
from edge.gateway.stream import Stream
from edge.gateway.streams import Streams
from edge.gateway.websocket import Broken, Message, Opcode, Reader

if TYPE_CHECKING:
    from edge.gateway.commands import Answered, Commands

RESTART = 1012
TOO_SLOW = 1008
EXPIRED = 4401
REVOKED = 4403


class SocketStream(Stream):
    """A stream over a WebSocket."""

    __slots__ = ("_commands", "_reader", "_unheard", "answered", "may_command")

    def __init__(
        self,
        hub: Hub,
        grant: Grant,
        expires_at: int,
        streams: Streams,
        commands: Commands,
        may_command: bool,
    ) -> None:
        super().__init__(hub, grant, expires_at, streams)
        self._commands = commands
        self.may_command = may_command
        # None once nothing that the client says can be understood any more.
        self._reader: Reader | None = Reader()
        # Whether nothing came since the last ping.
        self._unheard = False
        # What `commands` remembers of this connection.
        self.answered: Answered | None = None

    def _head(self, scope: Any) -> bytes:
        key = dict(scope["headers"])[b"sec-websocket-key"]
        return (
            b"HTTP/1.1 101 Switching Protocols\r\n"
            b"upgrade: websocket\r\n"
            b"connection: Upgrade\r\n"
            b"sec-websocket-accept: %b\r\n\r\n" % websocket.accept(key)
        )

    def _ready(self, cursor: int, retry_ms: int) -> bytes:
        return b'{"type":"ready","cursor":%d,"retry_ms":%d}' % (cursor, retry_ms)

    def _reset(self, reason: str, cursor: int, retry_ms: int) -> bytes:
        return b'{"type":"reset","reason":"%b","cursor":%d,"retry_ms":%d}' % (
            reason.encode(),
            cursor,
            retry_ms,
        )

    def _status(self, *, away: bool) -> bytes:
        return b'{"type":"status","database":"%b"}' % (b"away" if away else b"back")

    def write(self, batch: Batch) -> None:
        """Hand a batch to the transport."""
        if self._transport is not None:
            self._transport.write(batch.messages)

    def ping(self, now: int) -> None:
        """Ask for a sign of life, unless the connection takes nothing; cut off who gave none."""
        if self.blocked:
            return
        if self._unheard:
            self.give_up("silent")
            return
        self._unheard = True
        if self._reader is not None:
            self._reader.frames = 0
            if self._reader.grew_old():
                self._fail("slow", TOO_SLOW, "a message did not arrive in time")
                return
        if self._transport is not None:
            self._transport.write(websocket.frame(Opcode.PING, b""))
            self._send(b'{"type":"ping","time":%d}' % now)

    def renew(self) -> None:
        """End the stream because its credential ended."""
        self._finish("expired", EXPIRED, "renew")

    def revoke(self) -> None:
        """End the stream because its access was taken away."""
        self._finish("revoked", REVOKED, "revoked")

    def drain(self, retry_ms: int) -> None:
        """End the stream because the server stops; ask to come back after a while."""
        self._finish("drained", RESTART, str(retry_ms))

    # What the client says

    def go_on_after(self, cursor: int | None) -> None:
        """Start the stream anew at a cursor: ready or reset follows, and the events after it."""
        self.hub.leave(self)
        self.hub.join(self, cursor)

    def reply(self, text: bytes) -> None:
        """Answer what the client said."""
        if not self._ending:
            self._send(text)

    def data_received(self, data: bytes) -> None:
        """Take in what the client says."""
        self._unheard = False
        if self._reader is None:
            return
        try:
            for message in self._reader.feed(data):
                if not self._heard(message):
                    return
        except Broken as broken:
            self._fail("broken", broken.code, broken.why)

    def _heard(self, message: Message) -> bool:
        """Do what a message asks for; answer whether anything after it counts."""
        opcode, payload = message
        if opcode == Opcode.CLOSE:
            self._farewell(payload)
            return False
        if self._ending:
            return True
        if opcode == Opcode.PING:
            self._send_frame(Opcode.PONG, payload)
        elif opcode == Opcode.TEXT:
            self._commands.hear(self, payload)
        return True

    def _farewell(self, payload: bytes) -> None:
        """Answer a close frame, or take it for the answer to ours, and close."""
        if not self._ending:
            transport = self._begin_to_end("left")
            if transport is not None:
                transport.write(websocket.frame(Opcode.CLOSE, payload[:2]))
        if self._transport is not None:
            self._transport.close()

    # For the transport

    def pause_writing(self) -> None:
        """Note that the transport holds all it may."""
        super().pause_writing()
        if self._transport is not None and not self._ending:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Note that it drained."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        super().resume_writing()

    def _send(self, said: bytes) -> None:
        self._send_frame(Opcode.TEXT, said)

    def _send_frame(self, opcode: Opcode, payload: bytes) -> None:
        if self._transport is not None:
            self._transport.write(websocket.frame(opcode, payload))

    def _finish(self, why: str, code: int, reason: str) -> None:
        """Say why and wait for the client's own close frame, but not for ever."""
        transport = self._begin_to_end(why)
        if transport is not None:
            transport.write(websocket.closing(code, reason))

    def _fail(self, why: str, code: int, reason: str) -> None:
        """Say why and that nothing more comes, without hope of an answer that makes sense."""
        self._finish(why, code, reason)
        self._reader = None
        if self._transport is not None and not self._transport.is_closing():
            # A close at once could take the frame back that is on its way.
            self._transport.write_eof()
