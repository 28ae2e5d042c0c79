"""
What the gateway answers when it does not do what it was asked: application/problem+json.

Every problem has a stable `code` to branch on (they are listed in db/ERRORS.md); `detail` is for
people and may change. A project or task that is missing and one that is somebody else's give the
same bytes, apart from the trace id.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import orjson
from starlette.responses import Response

from edge import errors

# code: (HTTP status, title)
CODES: Mapping[str, tuple[int, str]] = {
    "bad_request": (400, "The request cannot be understood"),
    "bad_cursor": (400, "The cursor is not an event id"),
    "unauthenticated": (401, "Who is asking is not known"),
    "forbidden": (403, "This role may not do that"),
    "foreign_origin": (403, "The request comes from another site"),
    "not_found": (404, "There is no such thing"),
    "method_not_allowed": (405, "This cannot be done here"),
    "too_slow": (408, "The body did not arrive in time"),
    "refused": (409, "The task is past that"),
    "key_reused": (409, "The idempotency key belongs to a different request"),
    "too_large": (413, "The body is too large"),
    "unsupported_type": (415, "The body is not JSON"),
    "unknown_provider": (422, "The provider has no profile"),
    "bad_input": (422, "The input cannot be used"),
    "no_reason": (422, "A new attempt needs a reason"),
    "upgrade_required": (426, "This address speaks WebSocket, version 13"),
    "too_many_streams": (429, "This user follows too much at once"),
    "too_many_requests": (429, "This was asked too often in a short time"),
    "headers_too_large": (431, "The headers are too many or too large"),
    "internal": (500, "The server made a mistake"),
    "unavailable": (503, "This cannot be answered now"),
    "full": (503, "The server has all the streams it can hold"),
    "stopping": (503, "The server is about to stop"),
}

# SQLSTATE of a refused call: what the browser is told.
_BY_SQLSTATE: Mapping[str, str] = {
    "VC404": "not_found",
    "VC410": "key_reused",
    "VC411": "unknown_provider",
    "VC412": "bad_input",
    "VC413": "no_reason",
    "VC415": "bad_input",
    "VC416": "bad_input",
}

_RETRY_AFTER_S = 2.0


class Problem(Exception):
    """An answer that is not a success. `retry_after` is in seconds, and spread over a while."""

    def __init__(self, code: str, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.status, self.title = CODES[code]
        self.detail = detail or self.title
        if retry_after is None and self.status in (429, 503):
            retry_after = _RETRY_AFTER_S
        self.retry_after = retry_after

    def seconds(self) -> int:
        """Return after how long to come back, spread over a while."""
        return math.ceil((self.retry_after or 0.0) * random.uniform(1.0, 2.0))

    def response(self, trace_id: str) -> Response:
        """Return the HTTP answer."""
        body = {
            "type": f"urn:aivedio:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "trace_id": trace_id,
        }
        headers = {"cache-control": "no-store"}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.seconds())
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status == 426:
            headers["upgrade"] = "websocket"
            headers["sec-websocket-version"] = "13"
        return Response(orjson.dumps(body), self.status, headers, "application/problem+json")


def of(error: errors.EdgeError) -> Problem:
    """Return the problem that stands for what the database said."""
    if isinstance(error, errors.BadValue):
        return Problem("bad_request", "A value does not fit its type.")
    if isinstance(error, errors.Rejected):
        code = _BY_SQLSTATE.get(error.code or "")
        return Problem(code) if code else Problem("internal")
    return Problem("unavailable")
