"""
Volcengine Ark's video generation (Seedance): tasks, called back unsigned at every change.

    POST   /api/v3/contents/generations/tasks
    GET    /api/v3/contents/generations/tasks/{id}
    DELETE /api/v3/contents/generations/tasks/{id}

A deletion cancels a task that waits, is refused while it runs, and erases the record of one that
is over, with its result. The body of a callback is the answer to the query.
"""

from __future__ import annotations

from typing import Any

from edge.pretend.dialects.common import Asked, Dialect, Invalid, seconds, text
from edge.pretend.jobs import Job, Phase, State
from edge.pretend.studio import Submission


class Seedance(Dialect):
    """The dialect."""

    submits = ("/api/v3/contents/generations/tasks",)
    asks = "/api/v3/contents/generations/tasks/{id}"
    cancels = ("DELETE", "/api/v3/contents/generations/tasks/{id}")
    cancelable = frozenset({Phase.QUEUED})
    cancel_erases_ended = True
    id_prefix = "cgt-"
    retry_pauses = (1.0, 2.0, 4.0)
    words = {
        Phase.QUEUED: "queued",
        Phase.RUNNING: "running",
        Phase.SUCCEEDED: "succeeded",
        Phase.FAILED: "failed",
        Phase.CANCELED: "cancelled",
        Phase.ABORTED: "expired",
    }

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        if not isinstance(body.get("content"), list) or not body["content"]:
            raise Invalid("content: is required")
        return self.submission(asked, model=text(body, "model"), url=body.get("callback_url"))

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        return {"id": job.id}

    def shown(self, job: Job, state: State) -> Any:
        """Return the task, as queries and callbacks show it."""
        task: dict[str, Any] = {
            "id": job.id,
            "model": job.model,
            "status": self.word(state),
            "created_at": seconds(job.created_at),
            "updated_at": seconds(state.completed_at or state.started_at or job.created_at),
        }
        if state.has_output:
            task |= {"content": {"video_url": job.file_url}, "usage": {"completion_tokens": 1}}
        if state.error is not None:
            task["error"] = {"code": "InternalServiceError", "message": state.error}
        return task

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a deletion."""
        return 200, {}

    def cancel_refused(self, job: Job) -> tuple[int, Any]:
        """Answer a deletion of a task that runs."""
        return 409, self.problem(409, "The task is running and cannot be deleted.")

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Ark words it."""
        code = {401: "AuthenticationError", 404: "ResourceNotFound", 429: "RateLimitExceeded"}
        return {"error": {"code": code.get(status, "InvalidParameter"), "message": detail}}
