"""
The files that finished jobs point at: GET /files/{id}.mp4, with the true SHA-256 as ETag.

The bytes follow from the job's id, so that whoever downloads one can be checked. They are gone
once the provider's retention is over, and sooner or wrongly where the plan says so.
"""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from edge.pretend.faults import MEDIA_FAULTS, MEDIA_HEADER, Fault
from edge.pretend.studio import Studio


def routes(studio: Studio, lifetime_s: float) -> list[BaseRoute]:
    """Return the route of the files, each kept for `lifetime_s` after its job's end."""

    async def download(request: Request) -> Response:
        job = studio.book.get(request.path_params["id"])
        if job is None or not job.state.has_output or studio.ended_longer_ago(job, lifetime_s):
            return Response(status_code=404)
        job.downloads += 1
        if job.plan.has(Fault.FILE_GONE):
            studio.tally.add(Fault.FILE_GONE)
            return Response(status_code=404)
        fault = job.file_faults.popleft() if job.file_faults else None
        if fault is not None:
            studio.tally.add(fault)
        if fault is Fault.FILE_ERROR:
            return Response(status_code=503)
        body = job.file
        headers = {"etag": f'"{hashlib.sha256(body).hexdigest()}"'}
        if media := ",".join(fault for fault in MEDIA_FAULTS if job.plan.has(fault)):
            headers[MEDIA_HEADER] = media
        if job.plan.has(Fault.FILE_CORRUPT):
            studio.tally.add(Fault.FILE_CORRUPT)
            body = body[:-1] + bytes([body[-1] ^ 1])
        if fault is Fault.FILE_TRUNCATED:
            return Truncated(body, headers=headers, media_type="video/mp4")
        return Response(body, headers=headers, media_type="video/mp4")

    return [Route("/files/{id}.mp4", download, methods=["GET"])]


class Truncated(Response):
    """A response that promises its whole length, sends half and breaks off."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send half of the body, then close the connection."""
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        half = bytes(self.body[: len(self.body) // 2])
        await send({"type": "http.response.body", "body": half, "more_body": True})
        scope["hang_up"]()
