"""
The videos API that OpenAI had and gateways copy: jobs with a percentage, thin webhooks.

    POST   /v1/videos                 JSON or a form
    GET    /v1/videos/{id}
    GET    /v1/videos/{id}/content    the file, with the token
    DELETE /v1/videos/{id}            when it is over

A webhook goes to the project's endpoint and holds nothing but the job's id. Its header's id is
not the event's in its body.
"""

from __future__ import annotations

from email.message import Message
from email.parser import BytesParser
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Account, Api, Asked, Dialect, Invalid, seconds
from edge.pretend.dialects.signing import standard_key, standard_webhooks
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Submission


class OpenAiVideos(Dialect):
    """The dialect."""

    submits = ("/v1/videos",)
    asks = "/v1/videos/{id}"
    cancels = ("DELETE", "/v1/videos/{id}")
    cancelable: ClassVar[frozenset[Phase]] = frozenset()
    cancel_erases_ended = True
    moments = frozenset({Moment.COMPLETED})
    file_lifetime_s = 3600.0
    retry_pauses = (1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0, 3600.0)
    id_prefix = "video_"
    shows_progress = True
    signs = True
    words = {
        Phase.QUEUED: "queued",
        Phase.RUNNING: "in_progress",
        Phase.SUCCEEDED: "completed",
        Phase.FAILED: "failed",
        Phase.CANCELED: "failed",
        Phase.ABORTED: "failed",
    }

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._key = standard_key(account.secret) if account.secret else None

    def more(self, api: Api) -> list[BaseRoute]:
        """Return the route of the file."""

        async def content(request: Request) -> Response:
            job = api.job(request)
            if job is None or not job.state.has_output:
                return api.missing()
            job.downloads += 1
            return Response(job.file, media_type="video/mp4")

        return [api.route("GET", "/v1/videos/{id}/content", content)]

    async def body(self, request: Request) -> dict[str, Any]:
        """Return what a submission says, as JSON or as a form."""
        kind = request.headers.get("content-type", "")
        if not kind.startswith("multipart/form-data"):
            return await super().body(request)
        form = BytesParser().parsebytes(
            f"content-type: {kind}\r\n\r\n".encode() + await request.body()
        )
        return {
            str(part.get_param("name", header="content-disposition")): _text(part)
            for part in form.walk()
            if not part.is_multipart()
        }

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        model = asked.body.get("model", "sora-2")
        if not isinstance(asked.body.get("prompt"), str):
            raise Invalid("Missing required parameter: 'prompt'.")
        return self.submission(asked, model=str(model))

    def shown(self, job: Job, state: State) -> Any:
        """Return the job."""
        error = {"code": "generation_failed", "message": state.error}
        return {
            "id": job.id,
            "object": "video",
            "model": job.model,
            "status": self.word(state),
            "progress": 100 if state.has_output else state.progress,
            "created_at": seconds(job.created_at),
            "completed_at": seconds(state.completed_at),
            "expires_at": None,
            "seconds": "8",
            "size": "1280x720",
            "error": error if state.error is not None else None,
        }

    def told(self, job: Job, state: State) -> Any | None:
        """Return the event of an end: its kind and the id."""
        if not state.phase.is_end:
            return None
        kind = "video.completed" if state.has_output else "video.failed"
        return {
            "id": f"evt_{self.new_id()}",
            "object": "event",
            "created_at": seconds(state.completed_at),
            "type": kind,
            "data": {"id": job.id},
        }

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign as Standard Webhooks does, where a secret is configured."""
        return {} if self._key is None else standard_webhooks(self._key, sending)

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a deletion."""
        return 200, {"id": job.id, "object": "video.deleted", "deleted": True}

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as OpenAI words it."""
        return {"error": {"message": detail, "type": "invalid_request_error", "code": None}}


def _text(part: Message) -> str:
    content = part.get_payload(decode=True)
    return content.decode(errors="replace") if isinstance(content, bytes) else ""
