"""
Whether a request by cookie was made by a page of ours.

A cookie is sent by the browser whoever made the page; the page's origin tells whose it is.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from edge.gateway.problems import Problem


class SameSite:
    """Knows the pages of the site that is reached at `public_url`."""

    def __init__(self, public_url: str) -> None:
        url = urlsplit(public_url)
        self._scheme = url.scheme
        self._origin = f"{url.scheme}://{url.netloc}"

    def ours(self, origin: str, request: Request) -> bool:
        """Tell whether a page of this origin is ours."""
        # The cookie belongs to the host that the browser was sent to, by whatever name; a page
        # of that host, over the scheme that we are reached by, is ours.
        return origin in (self._origin, f"{self._scheme}://{request.headers.get('host', '')}")

    def require(self, request: Request) -> None:
        """Refuse a request that cannot show that a page of ours asked for it."""
        origin = request.headers.get("origin")
        if origin is None:
            if request.headers.get("sec-fetch-site") != "same-origin":
                raise Problem("foreign_origin")
        elif not self.ours(origin, request):
            raise Problem("foreign_origin")
