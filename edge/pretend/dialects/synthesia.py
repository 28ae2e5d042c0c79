"""
Synthesia: videos, called back at the account's endpoint when they are over.

    POST   /v2/videos        Authorization: the key as it is
    GET    /v2/videos/{id}
    DELETE /v2/videos/{id}   deletes it

The signature covers the time stamp and the body. Whatever is answered up to 399 is a success; two
more tries follow within ten minutes.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Asked, Dialect, seconds
from edge.pretend.dialects.signing import hex_hmac
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Submission


class Synthesia(Dialect):
    """The dialect."""

    submits = ("/v2/videos",)
    asks = "/v2/videos/{id}"
    cancels = ("DELETE", "/v2/videos/{id}")
    cancel_erases = True
    cancel_erases_ended = True
    created_status = 201
    moments = frozenset({Moment.COMPLETED})
    retry_pauses = (60.0, 540.0)
    shows_queue = False
    signs = True
    words = {
        Phase.QUEUED: "in_progress",
        Phase.RUNNING: "in_progress",
        Phase.SUCCEEDED: "complete",
        Phase.FAILED: "error",
        Phase.CANCELED: "error",
        Phase.ABORTED: "error",
    }

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's key."""
        return self.has_token(request, "authorization", "")

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        return self.submission(asked, echo=asked.body.get("callbackId"))

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll."""
        updated = state.completed_at or state.started_at or job.created_at
        video: dict[str, Any] = {
            "id": job.id,
            "status": self.word(state),
            "createdAt": seconds(job.created_at),
            "lastUpdatedAt": seconds(updated),
        }
        if job.echo is not None:
            video["callbackId"] = job.echo
        if state.has_output:
            video["download"] = job.file_url
        return video

    def told(self, job: Job, state: State) -> Any | None:
        """Return the event of an end."""
        if not state.phase.is_end:
            return None
        kind = "video.completed" if state.has_output else "video.failed"
        return {"type": kind, "data": self.shown(job, state)}

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign the time stamp and the body."""
        stamp = str(int(sending.at.timestamp()))
        message = stamp.encode() + b"." + sending.body
        return {
            "synthesia-timestamp": stamp,
            "synthesia-signature": hex_hmac(self.account.secret, message, sending),
        }

    def accepts(self, status: int) -> bool:
        """Answer whether this answer to a callback is a success."""
        return status < 400

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a deletion."""
        return 204, None

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Synthesia words it."""
        return {"error": "bad_request", "context": detail}
