"""
Runway: tasks that are polled; there are no callbacks.

    POST   /v1/text_to_video  /v1/image_to_video  /v1/video_to_video
    GET    /v1/tasks/{id}
    DELETE /v1/tasks/{id}     cancels a task that is not over, deletes one that is; it is gone then

Fields come and go with the status: progress while it runs, output when it succeeded, failure when
it failed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from edge.pretend.dialects.common import Asked, Dialect, Invalid, iso, text
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Submission

VERSION = "2024-11-06"


class Runway(Dialect):
    """The dialect."""

    submits = ("/v1/text_to_video", "/v1/image_to_video", "/v1/video_to_video")
    asks = "/v1/tasks/{id}"
    cancels = ("DELETE", "/v1/tasks/{id}")
    cancel_erases = True
    shows_progress = True
    cancel_erases_ended = True
    moments: ClassVar[frozenset[Moment]] = frozenset()
    words = {
        Phase.QUEUED: "PENDING",
        Phase.RUNNING: "RUNNING",
        Phase.SUCCEEDED: "SUCCEEDED",
        Phase.FAILED: "FAILED",
        Phase.CANCELED: "CANCELLED",
        Phase.ABORTED: "FAILED",
    }

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        if asked.request.headers.get("x-runway-version") != VERSION:
            raise Invalid("X-Runway-Version: is required")
        return self.submission(asked, model=text(asked.body, "model"))

    def created(self, job: Job) -> Any:
        """Answer a submission: the id, and what it is going to cost."""
        return {"id": job.id, "estimatedCost": {"credits": 25}}

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll."""
        task: dict[str, Any] = {
            "id": job.id,
            "status": self.word(state),
            "createdAt": iso(job.created_at),
            "estimatedCost": {"credits": 25},
        }
        match state.phase:
            case Phase.RUNNING:
                task["progress"] = state.progress / 100
            case Phase.SUCCEEDED:
                task["output"] = [job.file_url]
            case Phase.FAILED | Phase.ABORTED:
                task["failure"] = state.error or "The task took too long."
                task["failureCode"] = "INTERNAL.BAD_OUTPUT.CODE01"
        return task

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a deletion."""
        return 204, None

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Runway words it."""
        return {"error": detail}
