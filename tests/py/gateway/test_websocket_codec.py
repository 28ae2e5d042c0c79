"""
The frame codec against another implementation (wsproto), over generated and mangled bytes.

Both must understand the same of whatever a client sends: the same messages before a breach, and a
breach in the same place. Where they may differ is said in `ours_alone`.
"""

from __future__ import annotations

import base64
import os

import pytest
from hypothesis import example, given, settings, strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, TextMessage
from wsproto.frame_protocol import CloseReason, Frame, FrameProtocol, ParseFailed
from wsproto.utilities import generate_accept_token

from edge.gateway import websocket
from edge.gateway.websocket import MOST, Broken, Message, Opcode, Reader


def client_frame(
    opcode: int,
    payload: bytes,
    *,
    final: bool = True,
    reserved: int = 0,
    mask: bytes | None = b"\x01\x02\x03\x04",
) -> bytes:
    """Return a frame as a client sends it, or would if it knew no better."""
    first = (0x80 if final else 0) | reserved << 4 | opcode
    masked = 0 if mask is None else 0x80
    size = len(payload)
    if size < 126:
        head = bytes([first, masked | size])
    elif size < 65536:
        head = bytes([first, masked | 126]) + size.to_bytes(2)
    else:
        head = bytes([first, masked | 127]) + size.to_bytes(8)
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def ours(pieces: list[bytes]) -> tuple[list[tuple[int, bytes]], int | None]:
    """Return what our reader makes of the pieces, and the code of the breach."""
    reader = Reader()
    found: list[tuple[int, bytes]] = []
    try:
        for piece in pieces:
            for opcode, payload in reader.feed(piece):
                found.append((opcode, payload))
                if opcode == Opcode.CLOSE:
                    return found, None
    except Broken as broken:
        return found, broken.code
    return found, None


class Other:
    """What wsproto makes of the same."""

    def __init__(self) -> None:
        self._protocol = FrameProtocol(client=False, extensions=[])
        self._text = ""
        self.found: list[tuple[int, bytes]] = []

    def read(self, data: bytes) -> int | None:
        self._protocol.receive_bytes(data)
        try:
            for frame in self._protocol.received_frames():
                if int(frame.opcode) == Opcode.BINARY:
                    if frame.frame_finished:
                        return 1003
                elif self._take(frame):
                    return None
        except ParseFailed as failure:
            return int(failure.code)
        return None

    def _take(self, frame: Frame) -> bool:
        payload = frame.payload
        if isinstance(payload, str):
            self._text += payload
            if frame.message_finished:
                self.found.append((Opcode.TEXT, self._text.encode()))
                self._text = ""
        elif isinstance(payload, tuple):
            code, reason = payload
            said = b"" if code == CloseReason.NO_STATUS_RCVD else int(code).to_bytes(2)
            self.found.append((Opcode.CLOSE, said + (reason or "").encode()))
            return True
        else:
            self.found.append((frame.opcode, bytes(payload)))
        return False


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in zip(bounds, bounds[1:], strict=False)]


PAYLOADS = st.one_of(
    st.binary(max_size=140),
    st.text(max_size=60).map(str.encode),
    st.sampled_from([b"", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"x" * 125, b"x" * 126]),
)
CLOSES = st.one_of(
    st.just(b""),
    st.tuples(st.integers(0, 5100), st.text(max_size=20)).map(
        lambda pair: pair[0].to_bytes(2) + pair[1].encode()
    ),
    st.binary(max_size=130),
)
FRAMES = st.one_of(
    st.builds(
        client_frame,
        st.sampled_from([0, 1, 1, 1, 2, 9, 10]),
        PAYLOADS,
        final=st.booleans(),
        mask=st.binary(min_size=4, max_size=4),
    ),
    st.builds(client_frame, st.just(8), CLOSES),
    st.builds(client_frame, st.integers(0, 15), PAYLOADS, reserved=st.integers(0, 7)),
    st.builds(client_frame, st.integers(0, 15), PAYLOADS, mask=st.none()),
    st.binary(max_size=12),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAMES, max_size=6).map(b"".join), st.lists(st.integers(0, 4000), max_size=6))
@example(client_frame(1, b"\xf0\x9f", final=False) + client_frame(0, b"\x98\x80"), [3])
@example(client_frame(1, b"a", final=False) + client_frame(9, b"p") + client_frame(0, b"b"), [])
@example(client_frame(8, b"\x03\xe8bye") + client_frame(1, b"never read"), [])
def test_another_implementation_understands_the_same(data: bytes, places: list[int]) -> None:
    # Whatever was begun is over after this, so that a frame that may not be is not still awaited.
    data += b"\x80" * 140
    found, code = ours(cut(data, places))
    other = Other()
    other_code = other.read(data)
    assert found[: len(other.found)] == other.found
    if not ours_alone(code, other_code):
        assert (found, code) == (other.found, other_code)


def ours_alone(code: int | None, other_code: int | None) -> bool:
    """
    Tell whether there may be a difference.

    wsproto judges a text before its end, and waits for the rest of one that is too long for us.
    """
    return other_code == CloseReason.INVALID_FRAME_PAYLOAD_DATA or code == 1009


@given(st.binary(max_size=300), st.lists(st.integers(0, 400), max_size=5))
def test_any_bytes_are_read_or_refused(data: bytes, places: list[int]) -> None:
    whole = ours([data])
    assert ours(cut(data, places)) == whole
    assert whole[1] in (None, 1002, 1003, 1007, 1008, 1009)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 70_000])
def test_a_frame_of_any_size_is_read_by_another_implementation(size: int) -> None:
    text = ("é" * size)[:size].encode()
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(websocket.frame(Opcode.TEXT, text))
    read = "".join(event.data for event in client.events() if isinstance(event, TextMessage))
    assert read == text.decode()


def test_a_message_may_be_4_kib_and_not_a_byte_more() -> None:
    assert ours([client_frame(1, b"x" * MOST)]) == ([(Opcode.TEXT, b"x" * MOST)], None)
    assert ours([client_frame(1, b"x" * (MOST + 1))]) == ([], 1009)
    halves = client_frame(1, b"x" * MOST, final=False) + client_frame(0, b"x")
    assert ours([halves]) == ([], 1009)
    # Refused as soon as it is announced, not when it has come.
    assert ours([client_frame(1, b"x" * 100_000)[:10]]) == ([], 1009)
    assert ours([client_frame(1, b"x" * 5000)[:4]]) == ([], 1009)


def test_empty_fragments_without_end_are_refused() -> None:
    """Each is valid, and together they are nothing but work."""
    opened = client_frame(1, b"", final=False)
    assert ours([opened, *[client_frame(0, b"", final=False)] * 2000]) == ([], 1008)


def test_an_unfinished_message_is_seen_to_grow_old() -> None:
    reader = Reader()
    whole = client_frame(1, b"whole")
    for begun in (whole[:3], client_frame(1, b"a", final=False)):
        reader = Reader()
        assert not reader.grew_old()
        list(reader.feed(begun))
        assert not reader.grew_old()
        if begun[0] & 0x80 == 0:
            list(reader.feed(client_frame(10, b"")))
        assert reader.grew_old()
    assert list(reader.feed(client_frame(0, b"b"))) == [Message(Opcode.TEXT, b"ab")]
    assert not reader.grew_old()


def test_a_close_frame_holds_as_much_of_its_reason_as_fits() -> None:
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(websocket.closing(4401, "é" * 100))
    (event,) = client.events()
    assert isinstance(event, CloseConnection)
    assert (event.code, event.reason) == (4401, "é" * 61)


def test_the_handshake_is_the_standards() -> None:
    key = base64.b64encode(os.urandom(16))
    assert websocket.accept(key) == generate_accept_token(key)
    assert websocket.accept(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert websocket.is_key(key)
    for wrong in (b"", b"x", b"dGhlIHNhbXBsZSBub25jZQ", b"dGhlIHNhbXBsZSBub25jZQ=== ", key + key):
        assert not websocket.is_key(wrong)
