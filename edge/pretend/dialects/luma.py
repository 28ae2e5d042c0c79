"""
Luma's Dream Machine, the older API: generations, called back unsigned.

    POST   /dream-machine/v1/generations/video  /dream-machine/v1/generations
    GET    /dream-machine/v1/generations/{id}
    DELETE /dream-machine/v1/generations/{id}   deletes it, whatever it does

A callback is the generation itself. Only 200 is a success; three more tries follow within a third
of a second, and then never again.
"""

from __future__ import annotations

from typing import Any

from edge.pretend.dialects.common import Asked, Dialect, iso
from edge.pretend.jobs import Job, Phase, State
from edge.pretend.studio import Submission


class Luma(Dialect):
    """The dialect."""

    submits = ("/dream-machine/v1/generations/video", "/dream-machine/v1/generations")
    asks = "/dream-machine/v1/generations/{id}"
    cancels = ("DELETE", "/dream-machine/v1/generations/{id}")
    cancel_erases = True
    cancel_erases_ended = True
    created_status = 201
    retry_pauses = (0.1, 0.1, 0.1)
    words = {
        Phase.QUEUED: "queued",
        Phase.RUNNING: "dreaming",
        Phase.SUCCEEDED: "completed",
        Phase.FAILED: "failed",
        Phase.CANCELED: "failed",
        Phase.ABORTED: "failed",
    }

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        return self.submission(
            asked, model=str(body.get("model", "ray-2")), url=body.get("callback_url")
        )

    def shown(self, job: Job, state: State) -> Any:
        """Return the generation, as polls and callbacks show it."""
        return {
            "id": job.id,
            "generation_type": "video",
            "state": self.word(state),
            "failure_reason": state.error,
            "created_at": iso(job.created_at),
            "assets": {"video": job.file_url if state.has_output else None},
            "model": job.model,
        }

    def accepts(self, status: int) -> bool:
        """Answer whether this answer to a callback is a success."""
        return status == 200

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Answer a deletion."""
        return 204, None

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Luma words it."""
        return {"detail": detail}
