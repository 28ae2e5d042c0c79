"""
HeyGen: videos; callbacks of one's own URL are unsigned, those of the account's endpoint signed.

    POST   /v3/videos         Idempotency-Key: the same key is answered with the same video
    GET    /v3/videos/{id}
    DELETE /v3/videos/{id}    destroys it

A video is `waiting` in the answer to its submission and `pending` when it is asked about. The
signature is the HMAC of the body under the secret as it is written; its time stamp is not signed.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Account, Api, Asked, Dialect, reply, seconds
from edge.pretend.dialects.signing import hex_hmac
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Studio, Submission


class HeyGen(Dialect):
    """The dialect."""

    asks = "/v3/videos/{id}"
    cancels = ("DELETE", "/v3/videos/{id}")
    cancel_erases = True
    cancel_erases_ended = True
    moments = frozenset({Moment.COMPLETED})
    retry_pauses = (1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0, 3600.0)
    signs = True
    signs_time = False
    words = {
        Phase.QUEUED: "pending",
        Phase.RUNNING: "processing",
        Phase.SUCCEEDED: "completed",
        Phase.FAILED: "failed",
        Phase.CANCELED: "failed",
        Phase.ABORTED: "failed",
    }

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._made: dict[str, str] = {}

    def routes(self, studio: Studio) -> list[Any]:
        """Return the routes; a key that was used is answered as it was then."""
        api = Api(self, studio)

        async def create(request: Request) -> Response:
            key = request.headers.get("idempotency-key")
            before = studio.book.get(self._made.get(key or "", ""))
            if key and before is not None:
                return reply(self.created(before))
            response = await api.create(request)
            newest = next(studio.book.newest_first(), None)
            if key and response.status_code == 200 and newest is not None:
                self._made[key] = newest.id
            return response

        return [api.route("POST", "/v3/videos", create), *super().routes(studio)]

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's key."""
        return self.has_token(request, "x-api-key", "")

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        return self.submission(asked, url=body.get("callback_url"), echo=body.get("callback_id"))

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        return {"data": {"video_id": job.id, "status": "waiting"}}

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll."""
        return {
            "data": {
                "id": job.id,
                "status": self.word(state),
                "failure_code": "RENDER_FAILED" if state.error else None,
                "failure_message": state.error,
                "video_url": job.file_url if state.has_output else None,
                "created_at": seconds(job.created_at),
                "completed_at": seconds(state.completed_at),
            }
        }

    def told(self, job: Job, state: State) -> Any | None:
        """Return the event of an end."""
        if not state.phase.is_end:
            return None
        data: dict[str, Any] = {"video_id": job.id, "callback_id": job.echo}
        if state.has_output:
            return {
                "event_type": "avatar_video.success",
                "event_data": data | {"url": job.file_url},
            }
        return {"event_type": "avatar_video.fail", "event_data": data | {"msg": state.error}}

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign the body for the account's endpoint; a URL of one's own gets no signature."""
        if sending.url != self.account.endpoint:
            return {}
        return {
            "heygen-signature": hex_hmac(self.account.secret, sending.body, sending),
            "heygen-timestamp": str(int(sending.at.timestamp())),
            "heygen-event-id": sending.id,
        }

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as HeyGen words it."""
        return {"error": {"code": "invalid_parameter", "message": detail}}
