"""A bounded connection of a browser, for every port that browsers reach."""

from __future__ import annotations

import uuid

from edge.gateway.problems import Problem
from edge.http_server import BoundedProtocol


class BrowserProtocol(BoundedProtocol):
    """Allows for what browsers send, and refuses in the form of every other answer."""

    # Other applications of this host may have set cookies, too.
    head_bytes_at_most = 32 * 1024
    headers_at_most = 100

    def problem(self, status: int, code: str) -> bytes:
        """Return the body of a refusal."""
        return bytes(Problem(code).response(uuid.uuid4().hex).body)
