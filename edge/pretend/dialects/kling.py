"""
Kling, with the model in the path: tasks, asked for by a list of ids, called back at every change.

    POST /text-to-video/{model}  /image-to-video/{model}
    GET  /tasks?task_ids=…  /tasks?external_task_ids=…    `data` is a list, empty when there is none

HTTP 200 with a code other than 0 is an error. Times are in milliseconds, but seconds in a
callback's header. An external id may be used once. There is no cancellation.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Account, Api, Asked, Dialect, Invalid, reply
from edge.pretend.dialects.signing import standard_key, standard_webhooks
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Studio, Submission

RETENTION_S = 30 * 86_400.0


class Kling(Dialect):
    """The dialect."""

    submits = ("/text-to-video/{model}", "/image-to-video/{model}")
    moments = frozenset({Moment.START, Moment.COMPLETED})
    file_lifetime_s = RETENTION_S
    id_alphabet = "0123456789"
    id_length = 18
    signs = True
    words = {
        Phase.QUEUED: "submitted",
        Phase.RUNNING: "processing",
        Phase.SUCCEEDED: "succeeded",
        Phase.FAILED: "failed",
        Phase.CANCELED: "failed",
        Phase.ABORTED: "failed",
    }

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        # Without a secret the headers are simply absent.
        self._key = standard_key(account.secret) if account.secret else None

    def more(self, api: Api) -> list[BaseRoute]:
        """Return the route of the list."""

        async def ask(request: Request) -> Response:
            job = api.job(request)
            if job is None:
                return reply(self.wrapped([]))
            return api.tell(await api.studio.poll(job), job)

        return [api.route("GET", "/tasks", ask)]

    def find(self, request: Request, studio: Studio) -> Job | None:
        """Return the first job that is asked for."""
        asked = request.query_params
        if ids := asked.get("task_ids"):
            return studio.book.get(ids.split(",")[0])
        external = asked.get("external_task_ids", "").split(",")[0]
        return next((job for job in studio.book.newest_first() if job.echo == external), None)

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        options = asked.body.get("options") or {}
        if not isinstance(options, dict):
            raise Invalid("options: must be an object")
        return self.submission(
            asked,
            model=asked.request.path_params["model"],
            url=options.get("callback_url"),
            echo=options.get("external_task_id"),
        )

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        data = {"id": job.id, "status": "submitted", "create_time": _ms(job.created_at)}
        return self.wrapped(data | {"external_id": job.echo})

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll: a list."""
        return self.wrapped([self.told(job, state)])

    def told(self, job: Job, state: State) -> Any:
        """Return a task, as a callback shows it."""
        output = {"type": "video", "id": f"{job.id}1", "url": job.file_url, "duration": "5"}
        return {
            "id": job.id,
            "external_id": job.echo,
            "status": self.word(state),
            "message": state.error or "",
            "create_time": _ms(job.created_at),
            "update_time": _ms(state.completed_at or state.started_at or job.created_at),
            "outputs": [output] if state.has_output else [],
            "billing": [],
        }

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign as Standard Webhooks does, where a secret is configured."""
        return {} if self._key is None else standard_webhooks(self._key, sending)

    def accepts(self, status: int) -> bool:
        """Answer whether this answer to a callback is a success."""
        return status == 200

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Kling words it."""
        return {"code": 1303 if status == 429 else 1200, "message": detail, "request_id": "q"}

    @staticmethod
    def wrapped(data: object) -> dict[str, Any]:
        """Return data in the envelope of every answer."""
        return {"code": 0, "message": "SUCCEED", "request_id": "q1", "data": data}


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
