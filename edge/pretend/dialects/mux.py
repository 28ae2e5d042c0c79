"""
Mux, as the transcoder that it is: assets, called back at the environment's endpoint.

    POST   /video/v1/assets         Basic: id and secret of a token
    GET    /video/v1/assets/{id}
    DELETE /video/v1/assets/{id}

Progress is a number up to 100, and -1 where there is none. An event's id is in its body. After
`ready` an `updated` may follow.
"""

from __future__ import annotations

import base64
import hmac
from typing import Any

from starlette.requests import Request

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Asked, Dialect, Invalid, iso, seconds
from edge.pretend.dialects.signing import hex_hmac
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Submission

_EVENTS = {
    Phase.QUEUED: "video.asset.created",
    Phase.RUNNING: "video.asset.created",
    Phase.SUCCEEDED: "video.asset.ready",
    Phase.FAILED: "video.asset.errored",
    Phase.CANCELED: "video.asset.deleted",
    Phase.ABORTED: "video.asset.errored",
}


class Mux(Dialect):
    """The dialect."""

    submits = ("/video/v1/assets",)
    asks = "/video/v1/assets/{id}"
    cancels = ("DELETE", "/video/v1/assets/{id}")
    cancel_erases = True
    cancel_erases_ended = True
    created_status = 201
    moments = frozenset({Moment.START, Moment.COMPLETED})
    retry_pauses = (1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0, 3600.0)
    shows_queue = False
    shows_progress = True
    signs = True
    words = {
        Phase.QUEUED: "preparing",
        Phase.RUNNING: "preparing",
        Phase.SUCCEEDED: "ready",
        Phase.FAILED: "errored",
        Phase.CANCELED: "errored",
        Phase.ABORTED: "errored",
    }

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the token's id and secret."""
        token = base64.b64encode(self.account.token.encode()).decode()
        given = request.headers.get("authorization", "")
        return hmac.compare_digest(given.encode(), f"Basic {token}".encode())

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        if not (body.get("inputs") or body.get("input")):
            raise Invalid("inputs: is required")
        return self.submission(asked, echo=body.get("passthrough"))

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll."""
        return {"data": self._asset(job, state)}

    def told(self, job: Job, state: State) -> Any:
        """Return an event."""
        return {
            "type": _EVENTS[state.phase],
            "id": self.new_id(),
            "created_at": iso(state.completed_at or state.started_at or job.created_at),
            "object": {"type": "asset", "id": job.id},
            "environment": {"id": "n1", "name": "Production"},
            "data": self._asset(job, state),
            "attempts": [],
        }

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign the time stamp and the body."""
        stamp = str(int(sending.at.timestamp()))
        message = stamp.encode() + b"." + sending.body
        return {"mux-signature": f"t={stamp},v1={hex_hmac(self.account.secret, message, sending)}"}

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a deletion."""
        return 204, None

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Mux words it."""
        return {"error": {"type": "invalid_parameters", "messages": [detail]}}

    def _asset(self, job: Job, state: State) -> dict[str, Any]:
        running = state.phase in (Phase.QUEUED, Phase.RUNNING)
        asset: dict[str, Any] = {
            "id": job.id,
            "status": self.word(state),
            "created_at": str(seconds(job.created_at)),
            "progress": {
                "state": "transcoding" if running else "completed",
                "progress": -1 if state.error else 100 if state.has_output else state.progress,
            },
        }
        if job.echo is not None:
            asset["passthrough"] = job.echo
        if state.has_output:
            asset["playback_ids"] = [{"id": f"{job.id}p", "policy": "public"}]
        if state.error is not None:
            asset["errors"] = {"type": "invalid_input", "messages": [state.error]}
        return asset
