"""
The WebSocket protocol (RFC 6455), as far as the gateway speaks it: no I/O, no extensions.

It writes frames of any size and reads messages of at most `MOST` bytes, in however many fragments.
A reader that finds the protocol broken raises `Broken`, whose code goes into the close frame:

    1002   a frame that may not be: unmasked, reserved bits or opcodes, a fragmented control frame,
           a continuation of nothing, a close code that is not for the wire
    1003   a binary message: there is nothing to say in one
    1007   a text that is not UTF-8
    1008   more than `MOST_FRAMES` frames in one period
    1009   a message longer than `MOST`
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

MOST: Final = 4096
MOST_FRAMES: Final = 1000

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FIN, _RESERVED, _MASKED = 0x80, 0x70, 0x80
_MOST_CONTROL = 125
_SHORT, _LONG = 126, 127
# Codes that a close frame may carry: those that are defined for it, and 3000 to 4999.
_DEFINED = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015)})


class Opcode(IntEnum):
    """What a frame is."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


_KNOWN = frozenset(Opcode)


class Broken(Exception):
    """The peer broke the protocol: the connection is to be closed with `code`."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class Message(NamedTuple):
    """A whole text message, or a control frame."""

    opcode: Opcode
    payload: bytes


def accept(key: bytes) -> bytes:
    """Return the answer to a handshake's key."""
    return base64.b64encode(hashlib.sha1(key + _GUID).digest())


def is_key(key: bytes) -> bool:
    """Tell whether a handshake's key is one: 16 bytes in base64."""
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except ValueError:
        return False


def frame(opcode: Opcode, payload: bytes) -> bytes:
    """Return a whole message as one unmasked frame."""
    size = len(payload)
    first = _FIN | opcode
    if size < _SHORT:
        return b"%c%c%b" % (first, size, payload)
    if size < 1 << 16:
        return b"%c%c%b%b" % (first, _SHORT, size.to_bytes(2), payload)
    return b"%c%c%b%b" % (first, _LONG, size.to_bytes(8), payload)


def closing(code: int, why: str = "") -> bytes:
    """Return the close frame that says why; a reason that is too long is cut."""
    reason = why.encode()[: _MOST_CONTROL - 2].decode(errors="ignore").encode()
    return frame(Opcode.CLOSE, code.to_bytes(2) + reason)


class Reader:
    """Makes messages of what a client sends, wherever its bytes are cut."""

    __slots__ = ("_aged", "_held", "_parts", "frames")

    def __init__(self) -> None:
        # Since whoever owns the reader last set it to 0.
        self.frames = 0
        # Bytes of a frame that is not whole yet, and the fragments of a message so far.
        self._held = b""
        self._parts: list[bytes] | None = None
        self._aged = False

    def feed(self, data: bytes) -> Iterator[Message]:
        """
        Yield the messages that are complete now, in their order. Raises `Broken`.

        After a close frame or a breach the reader is of no use any more.
        """
        data = self._held + data
        at = 0
        while (found := _frame(data, at)) is not None:
            final, opcode, payload, at = found
            self.frames += 1
            if self.frames > MOST_FRAMES:
                raise Broken(1008, "too many frames")
            message = self._message(final, opcode, payload)
            if self._parts is None:
                self._aged = False
            if message is not None:
                yield message
        self._held = data[at:]

    def _message(self, final: bool, opcode: Opcode, payload: bytes) -> Message | None:
        if opcode >= Opcode.CLOSE:
            return _control(opcode, payload)
        if (opcode == Opcode.CONTINUATION) == (self._parts is None):
            raise Broken(1002, "a fragment out of place")
        if opcode == Opcode.BINARY:
            raise Broken(1003, "only text is understood")
        parts = self._parts or []
        parts.append(payload)
        if sum(map(len, parts)) > MOST:
            raise Broken(1009, "a message is too long")
        if not final:
            self._parts = parts
            return None
        self._parts = None
        text = b"".join(parts)
        _require_utf8(text)
        return Message(Opcode.TEXT, text)

    @property
    def unfinished(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._held) or self._parts is not None

    def grew_old(self) -> bool:
        """Tell whether the message that is unfinished was so already when this was last asked."""
        was, self._aged = self._aged, self.unfinished
        return was and self._aged


def _frame(data: bytes, at: int) -> tuple[bool, Opcode, bytes, int] | None:
    """Return the frame that begins at `at`, and where it ends; None if it is not whole yet."""
    if len(data) - at < 2:
        return None
    first, second = data[at], data[at + 1]
    number, size = first & 0x0F, second & 0x7F
    if first & _RESERVED or number not in _KNOWN:
        raise Broken(1002, "a frame of an unknown kind")
    if not second & _MASKED:
        raise Broken(1002, "a frame without a mask")
    final = bool(first & _FIN)
    if number >= Opcode.CLOSE and (size > _MOST_CONTROL or not final):
        raise Broken(1002, "a control frame that is long or in fragments")
    start = at + 2
    if size == _SHORT:
        if len(data) < start + 2:
            return None
        size = int.from_bytes(data[start : start + 2])
        start += 2
        if size < _SHORT:
            raise Broken(1002, "a length that is not the shortest")
    if size > MOST or second & 0x7F == _LONG:
        raise Broken(1009, "a message is too long")
    end = start + 4 + size
    if len(data) < end:
        return None
    return final, Opcode(number), _unmasked(data[start : start + 4], data[start + 4 : end]), end


def _unmasked(mask: bytes, payload: bytes) -> bytes:
    size = len(payload)
    pad = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(pad)).to_bytes(size)


def _control(opcode: Opcode, payload: bytes) -> Message:
    if opcode == Opcode.CLOSE and payload:
        code = int.from_bytes(payload[:2])
        if len(payload) < 2 or not (code in _DEFINED or 3000 <= code <= 4999):
            raise Broken(1002, "a close code that may not be sent")
        _require_utf8(payload[2:])
    return Message(opcode, payload)


def _require_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise Broken(1007, "a text that is not UTF-8") from None
