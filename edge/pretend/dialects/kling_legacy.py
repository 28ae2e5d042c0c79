"""
Kling's older API: a path for each kind of task, other names for the same fields, other words.

    POST /v1/videos/text2video  /v1/videos/image2video
    GET  /v1/videos/text2video/{id}  /v1/videos/image2video/{id}

Callers sign a token of their own with the account's secret key; here it is only looked for.
"""

from __future__ import annotations

from typing import Any

import jwt
from starlette.requests import Request
from starlette.routing import BaseRoute

from edge.pretend.dialects.common import Api, Asked
from edge.pretend.dialects.kling import Kling, _ms
from edge.pretend.jobs import Job, Phase, State
from edge.pretend.studio import Studio, Submission


class KlingLegacy(Kling):
    """The dialect."""

    submits = ("/v1/videos/text2video", "/v1/videos/image2video")
    asks = "/v1/videos/{kind}/{id}"
    words = Kling.words | {Phase.SUCCEEDED: "succeed"}

    def more(self, api: Api) -> list[BaseRoute]:
        """Return no route of a list."""
        return []

    def find(self, request: Request, studio: Studio) -> Job | None:
        """Return the job of the path."""
        return studio.book.get(request.path_params["id"])

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has a token that the key signed, or the key itself."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer":
            return False
        if token == self.account.token:
            return True
        try:
            jwt.decode(
                token, self.account.token, algorithms=["HS256"], options={"require": ["iss"]}
            )
        except jwt.InvalidTokenError:
            return False
        return True

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        return self.submission(
            asked,
            model=str(body.get("model_name", "kling-v1")),
            url=body.get("callback_url"),
            echo=body.get("external_task_id"),
        )

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        data = {"task_id": job.id, "task_status": "submitted", "created_at": _ms(job.created_at)}
        return self.wrapped(data | {"task_info": {"external_task_id": job.echo}})

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll."""
        return self.wrapped(self.told(job, state))

    def told(self, job: Job, state: State) -> Any:
        """Return a task, as a callback shows it."""
        video = {"id": f"{job.id}1", "url": job.file_url, "duration": "5"}
        return {
            "task_id": job.id,
            "task_status": self.word(state),
            "task_status_msg": state.error or "",
            "task_info": {"external_task_id": job.echo},
            "created_at": _ms(job.created_at),
            "updated_at": _ms(state.completed_at or state.started_at or job.created_at),
            "task_result": {"videos": [video] if state.has_output else []},
        }
