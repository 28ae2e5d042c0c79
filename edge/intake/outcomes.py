"""What became of a request to a provider, in the words that the settle functions understand."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

Outcome = dict[str, Any]

SAMPLE = 500
LONGEST_WAIT = 86_400.0


def response(status: int, raw: bytes, retry_after: str | None, now: float) -> Outcome:
    """
    Return the outcome of an answer that was read completely.

    The body of a success must be JSON, or absent where the status says so. Errors come as HTML from
    any proxy on the way, so their status counts, and a text is passed on as it is.
    """
    outcome: Outcome = {"kind": "response", "http_status": status, "body": None}
    wait = retry_after_seconds(retry_after, now)
    if wait is not None:
        outcome["retry_after_s"] = wait
    if not raw.strip():
        if status in (202, 204, 205) or not 200 <= status < 300:
            return outcome
        return malformed(status, raw)
    try:
        outcome["body"] = orjson.loads(raw)
    except orjson.JSONDecodeError:
        if 200 <= status < 300:
            return malformed(status, raw)
        outcome["body"] = sample(raw)
    return outcome


def malformed(status: int, raw: bytes) -> Outcome:
    """Return the outcome of an answer that makes no sense, with the beginning of it."""
    return {"kind": "malformed", "http_status": status, "sample": sample(raw)}


def sample(raw: bytes) -> str:
    """Return the beginning of a body as text that PostgreSQL can hold."""
    return raw[: 4 * SAMPLE].decode(errors="replace").replace("\0", "\ufffd")[:SAMPLE]


def too_large(status: int) -> Outcome:
    """Return the outcome of an answer that was not read to its end."""
    return {"kind": "too_large", "http_status": status}


def failed(kind: str, error: str) -> Outcome:
    """Return the outcome of a request without an answer: timeout, network or not_sent."""
    return {"kind": kind, "error": error}


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Return what a Retry-After header asks for, seconds or a date, or None."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        wait = float(text)
    else:
        try:
            at = parsedate_to_datetime(text)
        except (TypeError, ValueError, OverflowError):
            return None
        wait = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now
    if not math.isfinite(wait):
        return None
    return min(max(0.0, wait), LONGEST_WAIT)


class TooLarge(Exception):
    """A body is larger than allowed, as sent or unpacked."""


class Undecodable(Exception):
    """A body is packed in a way that was not asked for."""


def unpacker(encoding: str, limit: int) -> Callable[[bytes], bytes]:
    """
    Return a function that unpacks a body piece by piece and never yields more than `limit`.

    We ask for no packing, but some servers pack all the same. Raises Undecodable for a kind that we
    do not know; the function raises it for broken input, and TooLarge.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return lambda piece: piece
    if name not in ("gzip", "x-gzip", "deflate"):
        raise Undecodable(name)
    # 32 + 15: zlib or gzip, whichever the header says.
    unpacking = zlib.decompressobj(32 + zlib.MAX_WBITS)
    left = limit + 1

    def unpack(piece: bytes) -> bytes:
        nonlocal left
        try:
            plain = unpacking.decompress(piece, left)
        except zlib.error as error:
            raise Undecodable(name) from error
        left -= len(plain)
        if left <= 0:
            raise TooLarge
        return plain

    return unpack


def wall_clock() -> float:
    """Return the time in Unix seconds."""
    return time.time()
