"""
The one encoder of events: what a browser reads is made here, and nowhere else.

An event becomes bytes once. The dispatcher encodes the bus message and publishes it, a gateway
encodes what it replays from PostgreSQL, and both give the same bytes for the same event:

    id: 9823417\\n
    event: task.status\\n
    data: {"task_id":"…","task_version":18,"status":"running",…,"prev":9823390}\\n
    \\n

`prev` is the id that the same connection was sent before this one, so that a page can prove that
nothing is missing. It is the only part that differs between connections, hence it stands last
and an `Event` keeps the bytes before it as its `head`. A WebSocket carries the same bytes in
another order, cut from the head without reading any JSON:

    {"type":"task.status","event_id":9823417,"task_id":"…","task_version":18,
     "payload":{"status":"running",…},"prev":9823390}

A Redis message is a fixed header, read without touching JSON, followed by that head:

    project uuid 16 · event_id u64 · prev_event_id u64 · task_version u64 · task uuid 16 · flags u8

orjson escapes control characters, so a head holds no NUL, no CR and exactly its own line feeds.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import orjson

PROGRESS_ONLY = 1
PROGRESS_EVENT = "task.progress.changed"
MAX_MESSAGE = 16 * 1024

_HEADER = struct.Struct(">16sQQQ16sB")
_SAFE_INTEGER = 2**53 - 1
_CLOSING = b',"prev":'
_MESSAGE = (
    b'{"type":"task.status","event_id":%d,"task_id":"%b","task_version":%d,'
    b'"payload":{%b},"prev":%d}'
)
# The order in which people expect to read a frame; other keys follow in alphabetical order.
_FIRST = ("task_id", "task_version", "status", "stage", "progress", "asset_id", "error")
_RANK = {name: rank for rank, name in enumerate(_FIRST)}


class BadFrame(ValueError):
    """Not an event, or not a message that `encode` made."""


class Header(NamedTuple):
    """What stands in front of the frame in a Redis message."""

    project: bytes
    event_id: int
    prev: int
    task_version: int
    task: bytes
    flags: int


class Event(NamedTuple):
    """One event, encoded: everything but the number that closes its frame."""

    event_id: int
    prev: int
    task_version: int
    task: bytes
    progress_only: bool
    head: bytes

    def closed(self, prev: int) -> bytes:
        """Return the whole frame for a connection whose last event was `prev`."""
        return b"%b%d}\n\n" % (self.head, prev)

    def message(self, prev: int) -> bytes:
        """Return the same as the text of a WebSocket message."""
        start = len(_opening(self.event_id, self.task, self.task_version)) + 1
        return _MESSAGE % (
            self.event_id,
            _text(self.task),
            self.task_version,
            self.head[start : -len(_CLOSING)],
            prev,
        )


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """Mirror of the SQL type aivedio.stored_event."""

    event_id: int
    prev_event_id: int
    task_id: UUID
    task_version: int
    event_type: str
    public_payload: Mapping[str, Any]


def encode(body: Mapping[str, Any]) -> bytes:
    """
    Make the Redis message of a bus message's body.

    Raises `BadFrame` for a body that lacks a field or holds one of the wrong kind: such a message
    will never become an event, however often it is tried.
    """
    try:
        task = UUID(body["aggregate_id"])
        event = _event(
            body["event_id"],
            body["prev_event_id"],
            body["aggregate_version"],
            task,
            body["event_type"],
            body["public_payload"],
        )
        project = UUID(body["project_id"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadFrame("the body is not an event's") from error
    flags = PROGRESS_ONLY if event.progress_only else 0
    header = _HEADER.pack(
        project.bytes, event.event_id, event.prev, event.task_version, task.bytes, flags
    )
    return header + event.head


def frame(stored: StoredEvent) -> Event:
    """Encode an event read from PostgreSQL: the same bytes as the live message carried."""
    return _event(
        stored.event_id,
        stored.prev_event_id,
        stored.task_version,
        stored.task_id,
        stored.event_type,
        stored.public_payload,
    )


def decode_header(message: bytes) -> Header:
    """Read a Redis message's header. Raises `BadFrame` when it is too short or too long."""
    if not _HEADER.size < len(message) <= MAX_MESSAGE:
        raise BadFrame("a message of impossible length")
    return Header._make(_HEADER.unpack_from(message))


def decode(message: bytes) -> Event:
    """
    Read a Redis message whole. Raises `BadFrame` for bytes that `encode` cannot have made.

    Whoever reaches Redis could otherwise have bytes of their choice written into every stream.
    """
    header = decode_header(message)
    head = message[_HEADER.size :]
    opening = _opening(header.event_id, header.task, header.task_version) + b","
    if (
        not 0 <= header.prev < header.event_id <= _SAFE_INTEGER
        or not head.startswith(opening)
        or not head.endswith(_CLOSING)
        or head.count(b"\n") != 2
        or b"\r" in head
        or b"\0" in head
    ):
        raise BadFrame("a message that is no event frame")
    return Event(
        header.event_id,
        header.prev,
        header.task_version,
        header.task,
        bool(header.flags & PROGRESS_ONLY),
        head,
    )


def _event(
    event_id: int,
    prev: int,
    task_version: int,
    task: UUID,
    event_type: str,
    payload: Mapping[str, Any],
) -> Event:
    if type(event_id) is not int or type(prev) is not int or type(task_version) is not int:
        raise BadFrame("an id is not a number")
    if not 0 <= prev < event_id <= _SAFE_INTEGER or not 0 < task_version <= _SAFE_INTEGER:
        raise BadFrame("ids out of order or out of range")
    fields = {**payload, "task_id": str(task), "task_version": task_version}
    fields.pop("prev", None)
    # jsonb and brokers order keys as they please: one order makes one sequence of bytes.
    ordered = {key: fields[key] for key in sorted(fields, key=_reading_order)}
    try:
        data = orjson.dumps(ordered)
    except orjson.JSONEncodeError as error:
        raise BadFrame("the payload is not JSON") from error
    head = b"id: %d\nevent: task.status\ndata: %b%b" % (event_id, data[:-1], _CLOSING)
    if len(head) + _HEADER.size > MAX_MESSAGE:
        raise BadFrame("the payload is too large")
    return Event(event_id, prev, task_version, task.bytes, event_type == PROGRESS_EVENT, head)


def _opening(event_id: int, task: bytes, task_version: int) -> bytes:
    """Return what stands first in the frame of an event, up to its version."""
    return b'id: %d\nevent: task.status\ndata: {"task_id":"%b","task_version":%d' % (
        event_id,
        _text(task),
        task_version,
    )


def _text(task: bytes) -> bytes:
    digits = task.hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(parts).encode()


def _reading_order(key: str) -> tuple[int, str]:
    return _RANK.get(key, len(_FIRST)), key
