"""
D-ID: talks, clips and scenes, called back unsigned.

    POST   /talks  /clips  /scenes  /expressives  /animations
    GET    /{kind}/{id}
    DELETE /{kind}/{id}    deletes it
"""

from __future__ import annotations

import base64
import hmac
from typing import Any

from starlette.requests import Request

from edge.pretend.dialects.common import Asked, Dialect, iso
from edge.pretend.jobs import Job, Phase, State
from edge.pretend.studio import Submission

KINDS = ("talks", "clips", "scenes", "expressives", "animations")


class DId(Dialect):
    """The dialect."""

    submits = tuple(f"/{kind}" for kind in KINDS)
    asks = "/{kind}/{id}"
    cancels = ("DELETE", "/{kind}/{id}")
    cancel_erases = True
    cancel_erases_ended = True
    created_status = 201
    id_prefix = "tlk_"
    words = {
        Phase.QUEUED: "created",
        Phase.RUNNING: "started",
        Phase.SUCCEEDED: "done",
        Phase.FAILED: "error",
        Phase.CANCELED: "error",
        Phase.ABORTED: "rejected",
    }

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's key, by either scheme."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        token = self.account.token
        basic = base64.b64encode(token.encode()).decode()
        wanted = {"Bearer": (token,), "Basic": (token, basic)}.get(kind, ())
        return any(hmac.compare_digest(given.encode(), one.encode()) for one in wanted)

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        return self.submission(asked, url=body.get("webhook"), echo=body.get("user_data"))

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        return {
            "id": job.id,
            "object": "talk",
            "created_by": "user",
            "created_at": iso(job.created_at),
            "status": "created",
        }

    def shown(self, job: Job, state: State) -> Any:
        """Return the talk, as queries and callbacks show it."""
        talk: dict[str, Any] = {
            "id": job.id,
            "object": "talk",
            "status": self.word(state),
            "user_data": job.echo,
            "created_at": iso(job.created_at),
            "started_at": iso(state.started_at),
            "modified_at": iso(state.completed_at or state.started_at or job.created_at),
        }
        if state.has_output:
            talk["result_url"] = job.file_url
        if state.error is not None:
            talk["error"] = {"kind": "RenderError", "description": state.error}
        return talk

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as D-ID words it."""
        return {"kind": "BadRequestError", "description": detail}
