"""
What the operators' page answers when it does not do what it was asked: application/problem+json.

The form is the gateway's; the codes are those of both, and they are listed in db/ERRORS.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from edge import errors, logs
from edge.gateway import envelope, problems
from edge.gateway.problems import Problem

logger = logs.get(__name__)

OWN: Mapping[str, tuple[int, str]] = {
    "unfit": (409, "This cannot be done to it now"),
    "bad_argument": (422, "The action cannot be understood"),
    "reason_missing": (422, "Every action needs a reason"),
}
SHARED = (
    *("bad_request", "unauthenticated", "forbidden", "foreign_origin", "not_found"),
    *("method_not_allowed", "too_slow", "too_large", "unsupported_type", "too_many_requests"),
    *("headers_too_large", "internal", "unavailable"),
)
CODES: Mapping[str, tuple[int, str]] = {
    **{code: problems.CODES[code] for code in SHARED},
    **OWN,
}

# SQLSTATE of a refused call: what the page is told, with the database's own words.
BY_SQLSTATE: Mapping[str, str] = {
    "VC002": "bad_argument",
    "VC404": "not_found",
    "VC413": "reason_missing",
    "VC415": "bad_argument",
    "VC903": "not_found",
    "VC904": "unfit",
    "VC905": "unfit",
    "VC906": "unfit",
}


class Refusal(Problem):
    """A problem by one of the codes of this page."""

    def __init__(self, code: str, detail: str = "") -> None:
        Exception.__init__(self, code)
        self.code = code
        self.status, self.title = CODES[code]
        self.detail = detail or self.title
        self.retry_after = None


async def _on_rejected(request: Request, error: errors.Rejected) -> Response:
    """Answer a call that the database refused for good: its words are ours, and constant."""
    code = BY_SQLSTATE.get(error.code or "")
    if isinstance(error, errors.BadValue):
        refusal: Problem = Refusal("bad_argument", "A value does not fit its type.")
    elif code is None:
        logger.warning("call refused", code=error.code)
        refusal = Problem("internal")
    else:
        sentences = [f"{text[:1].upper()}{text[1:]}" for text in (str(error), error.hint) if text]
        refusal = Refusal(code, ". ".join(sentences))
    answer: Response = await envelope.HANDLERS[Problem](request, refusal)
    return answer


HANDLERS = {**envelope.HANDLERS, errors.Rejected: _on_rejected, errors.BadValue: _on_rejected}
