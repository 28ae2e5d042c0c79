"""What a request says, checked: ids, cursors, keys, bodies. Raises `Problem` for what it cannot."""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any

import orjson
from starlette.requests import Request

from edge.gateway import websocket
from edge.gateway.problems import Problem

MAX_BODY = 256 * 1024
BODY_WITHIN_S = 10.0
PAGE_SIZE = 100
MAX_PAGE_SIZE = 500

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_CURSOR = re.compile(r"[0-9]{1,16}")
_LARGEST_CURSOR = 2**53 - 1
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_LIMIT = re.compile(r"[0-9]{1,3}")
_STATUS = re.compile(r"[a-z_]{1,40}")


def trace_id_in(headers: list[tuple[bytes, bytes]]) -> str:
    """Return the trace id that the caller gave, if it can be believed, else a new one."""
    found = {name: value for name, value in headers if name in (b"traceparent", b"x-request-id")}
    parent = _TRACEPARENT.fullmatch(found.get(b"traceparent", b"").decode("latin-1"))
    if parent and parent[1].strip("0"):
        return parent[1]
    given = found.get(b"x-request-id", b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def trace_id(request: Request) -> str:
    """Return the trace id that the request was given."""
    given: str = request.scope["state"]["trace_id"]
    return given


def path_id(request: Request, name: str) -> uuid.UUID:
    """Return an id of the path; one that cannot be is one that does not exist."""
    try:
        return exact_id(request.path_params[name])
    except ValueError:
        raise Problem("not_found") from None


def exact_id(text: str) -> uuid.UUID:
    """Return the id that is written in the usual form. Raises ValueError."""
    found = uuid.UUID(text)
    if str(found) != text.lower():
        raise ValueError("an id in another form")
    return found


def cursor(request: Request) -> int | None:
    """Return where the reader wants to go on: Last-Event-ID wins over `after`."""
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    if text is None:
        return None
    if not _CURSOR.fullmatch(text) or not is_cursor(int(text)):
        raise Problem("bad_cursor")
    return int(text)


def is_cursor(value: object) -> bool:
    """Tell whether a value can be an event's id."""
    return type(value) is int and 0 <= value <= _LARGEST_CURSOR


def wants_upgrade(request: Request) -> bool:
    """
    Tell whether the request is a WebSocket's handshake; a plain one is not.

    Raises `Problem` for one that cannot be answered.
    """
    headers = request.headers
    if headers.get("upgrade", "").lower() != "websocket":
        return False
    connection = [part.strip() for part in headers.get("connection", "").lower().split(",")]
    if "upgrade" not in connection or request.scope["http_version"] != "1.1":
        return False
    if headers.get("sec-websocket-version") != "13":
        raise Problem("upgrade_required")
    if not websocket.is_key(headers.get("sec-websocket-key", "").encode("latin-1")):
        raise Problem("bad_request", "Sec-WebSocket-Key is not a key.")
    return True


def uuid_or_none(text: str | None, name: str) -> uuid.UUID | None:
    """Return an id of the query."""
    if text is None:
        return None
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Problem("bad_request", f"{name} is not an id.") from None


def status(text: str | None) -> str | None:
    """Return the status that is asked for. One that there is not finds nothing."""
    if text is not None and not _STATUS.fullmatch(text):
        raise Problem("bad_request", "status is not a task's status.")
    return text


def limit(text: str | None) -> int:
    """Return how many tasks a page may hold."""
    if text is None:
        return PAGE_SIZE
    if not _LIMIT.fullmatch(text) or not 1 <= int(text) <= MAX_PAGE_SIZE:
        raise Problem("bad_request", f"limit must be a number from 1 to {MAX_PAGE_SIZE}.")
    return int(text)


def idempotency_key(request: Request) -> str | None:
    """Return the key under which a repeat is the same request."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Problem("bad_request", "Idempotency-Key must be 1 to 200 visible ASCII characters.")
    return key


def text_in(body: dict[str, Any], name: str, default: str) -> str:
    """Return a text of the body."""
    value = body.get(name, default)
    if not isinstance(value, str) or len(value) > 500:
        raise Problem("bad_input", f"{name} must be a text of at most 500 characters.")
    return value


async def json_body(request: Request, *, optional: bool = False) -> dict[str, Any]:
    """Read the body, bounded: an object, or nothing where it is optional."""
    raw = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            async for chunk in request.stream():
                raw += chunk
                if len(raw) > MAX_BODY:
                    raise Problem("too_large")
    except TimeoutError:
        raise Problem("too_slow") from None
    if optional and not raw:
        return {}
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise Problem("unsupported_type")
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Problem("bad_request", "The body is not JSON.") from None
    if not isinstance(body, dict):
        raise Problem("bad_request", "The body must be an object.")
    return body
