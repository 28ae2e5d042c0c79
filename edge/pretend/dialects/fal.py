"""
fal's queue: requests, whose state, result and cancellation have addresses of their own.

    POST /{model}[/{subpath}]?fal_webhook=URL
    GET  /{model}/requests/{id}/status     202 while it waits or runs, 200 when it is completed
    GET  /{model}/requests/{id}            the result; an error where the request failed
    PUT  /{model}/requests/{id}/cancel     202, or 400 when it is completed
    GET  /.well-known/jwks.json            the keys that verify webhooks

A model has two parts; the addresses that a submission answers leave its subpath out. COMPLETED
may be a failure: then its body says so. There is one webhook, at the end, signed with Ed25519
over its headers and the body's hash. What a canceled request reports is not documented: here it
is completed with an error.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Api, Asked, Dialect, reply
from edge.pretend.dialects.signing import ed25519_key
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Submission

_ENDED = {Phase.FAILED: "runner_error", Phase.CANCELED: "canceled", Phase.ABORTED: "timeout"}


class Fal(Dialect):
    """The dialect."""

    moments = frozenset({Moment.COMPLETED})
    # Ten times within two hours.
    retry_pauses = (15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 900.0, 1200.0, 1800.0, 2400.0)
    cancelable = frozenset({Phase.QUEUED, Phase.RUNNING})
    refused_status = 422
    documents_cancel = False
    signs = True
    words = {Phase.QUEUED: "IN_QUEUE", Phase.RUNNING: "IN_PROGRESS"} | dict.fromkeys(
        (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELED, Phase.ABORTED), "COMPLETED"
    )

    def more(self, api: Api) -> list[BaseRoute]:
        """Return the routes: a model's name has as many parts as it likes."""

        async def status(request: Request) -> Response:
            job = api.job(request)
            if job is None:
                return api.missing()
            return api.tell(await api.studio.poll(job, tells_result=False), job)

        async def result(request: Request) -> Response:
            job = api.job(request)
            if job is None:
                return api.missing()
            answer = api.studio.result(job)
            if answer.status != 200:
                return api.problem(answer.status, answer.detail)
            if not job.state.phase.is_end:
                return api.problem(400, "Request is still in progress")
            if not job.state.has_output:
                return api.problem(422, job.state.error or "Request was not finished")
            return reply(_result(job))

        async def keys(request: Request) -> Response:
            public = ed25519_key(self.account.secret).public_key().public_bytes_raw()
            x = base64.urlsafe_b64encode(public).decode().rstrip("=")
            key = {"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": "pretend", "x": x}
            return reply({"keys": [key]})

        return [
            Route("/.well-known/jwks.json", keys, methods=["GET"]),
            api.route("GET", "/{model:path}/requests/{id}/status", status),
            api.route("PUT", "/{model:path}/requests/{id}/cancel", api.cancel),
            api.route("GET", "/{model:path}/requests/{id}", result),
            api.route("POST", "/{model:path}", api.create),
        ]

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's key."""
        return self.has_token(request, "authorization", "Key ")

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        model = "/".join(asked.request.path_params["model"].split("/")[:2])
        return self.submission(
            asked, model=model, url=asked.request.query_params.get("fal_webhook")
        )

    def created(self, job: Job) -> Any:
        """Answer a submission: where to ask about it."""
        at = f"{job.base_url}/{job.model}/requests/{job.id}"
        return {
            "status": "IN_QUEUE",
            "request_id": job.id,
            "gateway_request_id": job.id,
            "response_url": at,
            "status_url": f"{at}/status",
            "cancel_url": f"{at}/cancel",
            "queue_position": 0,
        }

    def shown(self, job: Job, state: State) -> Any:
        """Answer where a request stands."""
        shown = {"status": self.word(state), "request_id": job.id} | {
            "response_url": f"{job.base_url}/{job.model}/requests/{job.id}"
        }
        if state.phase is Phase.QUEUED:
            return shown | {"queue_position": 0}
        if state.phase in _ENDED:
            return shown | {
                "logs": None,
                "metrics": {"inference_time": 0.1},
                "error": state.error or "Request was not finished",
                "error_type": _ENDED[state.phase],
            }
        return shown | {"logs": None}

    def shown_status(self, state: State) -> int:
        """Return 202 while it waits or runs."""
        return 200 if state.phase.is_end else 202

    def told(self, job: Job, state: State) -> Any | None:
        """Return the webhook of an end."""
        if not state.phase.is_end:
            return None
        told = {"request_id": job.id, "gateway_request_id": job.id}
        if state.has_output:
            return told | {"status": "OK", "payload": _result(job)}
        return told | {
            "status": "ERROR",
            "error": state.error or "Request was not finished",
            "payload": {"detail": [{"msg": state.error or "Request was not finished"}]},
        }

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign three headers and the hash of the body."""
        stamp = str(int(sending.at.timestamp()))
        digest = hashlib.sha256(sending.body).hexdigest()
        message = "\n".join((sending.job.id, "user", stamp, digest))
        key = ed25519_key(self.account.secret, forged=sending.forged)
        return {
            "x-fal-webhook-request-id": sending.job.id,
            "x-fal-webhook-user-id": "user",
            "x-fal-webhook-timestamp": stamp,
            "x-fal-webhook-signature": key.sign(message.encode()).hex(),
        }

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a cancellation that may come in time."""
        return 202, {"status": "CANCELLATION_REQUESTED"}

    def cancel_refused(self, job: Job) -> tuple[int, Any]:
        """Answer a cancellation that comes too late."""
        return 400, {"status": "ALREADY_COMPLETED"}

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as fal words it."""
        return {"detail": detail if status != 422 else [{"loc": ["body"], "msg": detail}]}


def _result(job: Job) -> dict[str, Any]:
    return {
        "video": {"url": job.file_url, "content_type": "video/mp4", "file_name": f"{job.id}.mp4"}
    }
