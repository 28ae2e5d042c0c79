"""
Vidu: tasks and their creations; callbacks whose headers are signed, but not their bodies.

    POST /ent/v2/text2video  /ent/v2/img2video  /ent/v2/template
    GET  /ent/v2/tasks/{id}/creations
    POST /ent/v2/tasks/{id}/cancel           before it is scheduled, else 400

A callback is the answer to the query. The signature is keyed with the API key that made the task.
How a canceled task is reported is not documented: here it failed.
"""

from __future__ import annotations

import secrets
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Asked, Dialect
from edge.pretend.dialects.signing import base64_hmac
from edge.pretend.jobs import Job, Phase, State
from edge.pretend.studio import Submission


class Vidu(Dialect):
    """The dialect."""

    submits = ("/ent/v2/text2video", "/ent/v2/img2video", "/ent/v2/template")
    asks = "/ent/v2/tasks/{id}/creations"
    cancels = ("POST", "/ent/v2/tasks/{id}/cancel")
    cancelable = frozenset({Phase.QUEUED})
    documents_cancel = False
    signs = True
    words = {
        Phase.QUEUED: "queueing",
        Phase.RUNNING: "processing",
        Phase.SUCCEEDED: "success",
        Phase.FAILED: "failed",
        Phase.CANCELED: "failed",
        Phase.ABORTED: "failed",
    }

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's key."""
        return self.has_token(request, "authorization", "Token ")

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        return self.submission(
            asked,
            model=str(body.get("model", "viduq1")),
            url=body.get("callback_url"),
            echo=body.get("payload"),
        )

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        return {"task_id": job.id, "state": "created", "model": job.model, "payload": job.echo}

    def shown(self, job: Job, state: State) -> Any:
        """Return the creations, as queries and callbacks show them."""
        creation = {"id": f"{job.id}c", "url": job.file_url, "cover_url": f"{job.file_url}.jpg"}
        return {
            "state": self.word(state),
            "err_code": "TaskFailed" if state.error else "",
            "credits": 4,
            "payload": job.echo or "",
            "creations": [creation] if state.has_output else [],
        }

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign the request's line and two headers; the body is not covered."""
        date = format_datetime(sending.at, usegmt=True)
        nonce = secrets.token_hex(8)
        url = urlsplit(sending.url)
        message = (
            f"POST\n{url.path}\n{url.query}\nvidu\n{date}\nDate:{date}\nx-request-nonce:{nonce}\n"
        )
        return {
            "date": date,
            "x-request-nonce": nonce,
            "x-hmac-signed-headers": "Date;x-request-nonce",
            "x-hmac-algorithm": "hmac-sha256",
            "x-hmac-access-key": "vidu",
            "x-hmac-signature": base64_hmac(self.account.token, message.encode(), sending),
        }

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a cancellation that came in time."""
        return 200, {}

    def cancel_refused(self, job: Job) -> tuple[int, Any]:
        """Answer a cancellation that came too late."""
        return 400, self.problem(400, "task state is scheduled, can not cancel")

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Vidu words it."""
        return {"code": status, "reason": "Error", "message": detail}
