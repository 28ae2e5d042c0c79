"""
DashScope's asynchronous video synthesis (Wan): tasks that are polled.

    POST /api/v1/services/aigc/video-generation/video-synthesis    X-DashScope-Async: enable
    GET  /api/v1/tasks/{id}
    POST /api/v1/tasks/{id}/cancel                                 while it is pending

A task that is not there is answered 200 and UNKNOWN. Events go to an account's event bus, not to
a URL of the job.
"""

from __future__ import annotations

from typing import Any, ClassVar

from edge.pretend.dialects.common import Asked, Dialect, Invalid, iso, text
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Submission


class DashScope(Dialect):
    """The dialect."""

    submits = ("/api/v1/services/aigc/video-generation/video-synthesis",)
    asks = "/api/v1/tasks/{id}"
    cancels = ("POST", "/api/v1/tasks/{id}/cancel")
    cancelable = frozenset({Phase.QUEUED})
    moments: ClassVar[frozenset[Moment]] = frozenset()
    words = {
        Phase.QUEUED: "PENDING",
        Phase.RUNNING: "RUNNING",
        Phase.SUCCEEDED: "SUCCEEDED",
        Phase.FAILED: "FAILED",
        Phase.CANCELED: "CANCELED",
        Phase.ABORTED: "FAILED",
    }

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        if asked.request.headers.get("x-dashscope-async") != "enable":
            raise Invalid("current user api does not support synchronous calls.")
        if not isinstance(asked.body.get("input"), dict):
            raise Invalid("input: is required")
        return self.submission(asked, model=text(asked.body, "model"))

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        return {"request_id": "q1", "output": {"task_id": job.id, "task_status": "PENDING"}}

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll."""
        output: dict[str, Any] = {
            "task_id": job.id,
            "task_status": self.word(state),
            "submit_time": iso(job.created_at),
        }
        if state.phase.is_end:
            output["end_time"] = iso(state.completed_at)
        if state.has_output:
            output["video_url"] = job.file_url
        if state.error is not None:
            output |= {"code": "InternalError.Algo", "message": state.error}
        shown: dict[str, Any] = {"request_id": "q1", "output": output}
        return shown | ({"usage": {"video_count": 1}} if state.has_output else {})

    def missing(self) -> tuple[int, Any]:
        """Answer a question about a task that is not there."""
        return 200, {"request_id": "q1", "output": {"task_id": "", "task_status": "UNKNOWN"}}

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a cancellation that came in time."""
        return 200, {"request_id": "q1"}

    def cancel_refused(self, job: Job) -> tuple[int, Any]:
        """Answer a cancellation that came too late."""
        return 400, {
            "request_id": "q1",
            "code": "UnsupportedOperation",
            "message": "Failed to cancel the task, please confirm that it is PENDING.",
        }

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as DashScope words it."""
        code = {401: "InvalidApiKey", 429: "Throttling.RateQuota"}.get(status, "InvalidParameter")
        return {"request_id": "q1", "code": code, "message": detail}
