"""Errors of the webhook port as application/problem+json; their codes are in db/ERRORS.md."""

from __future__ import annotations

import orjson
from starlette.responses import Response

TITLES = {
    "bad_request": "The request cannot be understood",
    "https_required": "Callbacks are taken over HTTPS only",
    "not_found": "There is no such thing",
    "method_not_allowed": "Callbacks are sent with POST",
    "too_slow": "The body did not arrive in time",
    "too_large": "The body is larger than this provider's callbacks may be",
    "unsupported_type": "This provider's callbacks have another content type",
    "headers_too_large": "The headers are too many or too large",
    "too_many_requests": "Too many callbacks; send it again later",
    "unavailable": "The callback was not stored; send it again later",
}


def encoded(status: int, code: str, trace_id: str | None = None) -> bytes:
    """Return the body of a problem."""
    problem: dict[str, object] = {
        "type": f"urn:aivedio:problem:{code}",
        "title": TITLES[code],
        "status": status,
        "code": code,
        "detail": TITLES[code],
    }
    if trace_id is not None:
        problem["trace_id"] = trace_id
    return orjson.dumps(problem)


def problem(
    status: int, code: str, trace_id: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    """Return a problem as a response."""
    return Response(
        encoded(status, code, trace_id),
        status_code=status,
        headers={"cache-control": "no-store", **(headers or {})},
        media_type="application/problem+json",
    )
