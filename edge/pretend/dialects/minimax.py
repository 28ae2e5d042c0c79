"""
MiniMax's first video API: a task, and a file that its result names.

    POST /v1/video_generation
    GET  /v1/query/video_generation?task_id=…
    GET  /v1/files/retrieve?file_id=…

A callback URL is challenged during the submission: it must echo the challenge within three
seconds, or nothing is called back. Callbacks say the words of the query in lower case, and
`failed` for `Fail`. Errors are HTTP 200 with a status code other than 0.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from edge.pretend.dialects import common
from edge.pretend.dialects.common import Api, Asked, Dialect, Invalid, reply, text
from edge.pretend.jobs import Job, Phase, State, Target
from edge.pretend.studio import Refusal, Studio, Submission

CHALLENGE_S = 3.0
_OK = {"status_code": 0, "status_msg": "success"}
_CODES = {401: 1004, 404: 2013, 429: 1002}
_TOLD = {
    Phase.QUEUED: "processing",
    Phase.RUNNING: "processing",
    Phase.SUCCEEDED: "success",
    Phase.FAILED: "failed",
    Phase.CANCELED: "failed",
    Phase.ABORTED: "failed",
}


class MiniMax(Dialect):
    """The dialect."""

    file_lifetime_s = 3600.0
    id_alphabet = "0123456789"
    id_length = 15
    words = {
        Phase.QUEUED: "Queueing",
        Phase.RUNNING: "Processing",
        Phase.SUCCEEDED: "Success",
        Phase.FAILED: "Fail",
        Phase.CANCELED: "Fail",
        Phase.ABORTED: "Fail",
    }

    def more(self, api: Api) -> list[BaseRoute]:
        """Return the routes; a submission challenges its callback URL first."""

        async def create(request: Request) -> Response:
            try:
                submission = self.read(Asked(request, await common.body_of(request)))
            except Invalid as invalid:
                return reply(self.problem(400, str(invalid)))
            if submission.target.url is not None and not await _echoes(submission.target.url):
                submission = replace(submission, target=Target())
            answer = await api.studio.submit(submission)
            if isinstance(answer, Refusal):
                return reply(self.problem(answer.status, answer.detail))
            return reply(self.created(answer))

        async def file(request: Request) -> Response:
            job = api.studio.book.get(request.query_params.get("file_id", ""))
            if job is None or not job.state.has_output:
                return reply(self.problem(404, "file not found"))
            answer = api.studio.result(job)
            if answer.status != 200:
                return api.problem(answer.status, answer.detail)
            found = {"file_id": job.id, "filename": "output.mp4", "download_url": job.file_url}
            return reply({"file": found, "base_resp": _OK})

        async def ask(request: Request) -> Response:
            job = api.job(request)
            if job is None:
                return api.missing()
            return api.tell(await api.studio.poll(job, tells_result=False), job)

        return [
            api.route("POST", "/v1/video_generation", create),
            api.route("GET", "/v1/query/video_generation", ask),
            api.route("GET", "/v1/files/retrieve", file),
        ]

    def find(self, request: Request, studio: Studio) -> Job | None:
        """Return the job of the query."""
        return studio.book.get(request.query_params.get("task_id", ""))

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        return self.submission(asked, model=text(body, "model"), url=body.get("callback_url"))

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        return {"task_id": job.id, "base_resp": _OK}

    def shown(self, job: Job, state: State) -> Any:
        """Answer a poll."""
        return self._task(job, state, self.word(state))

    def told(self, job: Job, state: State) -> Any:
        """Return a callback: the same in other words."""
        return self._task(job, state, state.odd_word or _TOLD[state.phase])

    def missing(self) -> tuple[int, Any]:
        """Answer a question about a task that is not there."""
        return 200, self.problem(404, "invalid task id")

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as MiniMax words it."""
        return {"base_resp": {"status_code": _CODES.get(status, 2013), "status_msg": detail}}

    @staticmethod
    def _task(job: Job, state: State, word: str) -> dict[str, Any]:
        failed = state.phase in (Phase.FAILED, Phase.CANCELED, Phase.ABORTED)
        ended = {"status_code": 1027, "status_msg": state.error or "failed"} if failed else _OK
        return {
            "task_id": job.id,
            "status": word,
            "file_id": job.id if state.has_output else "",
            "video_width": 1920 if state.has_output else 0,
            "video_height": 1080 if state.has_output else 0,
            "base_resp": ended,
        }


async def _echoes(url: str) -> bool:
    challenge = {"challenge": secrets.token_hex(12)}
    async with httpx.AsyncClient(timeout=CHALLENGE_S, trust_env=False) as client:
        try:
            response = await client.post(url, json=challenge)
            return response.status_code == 200 and response.json() == challenge
        except (httpx.HTTPError, ValueError):
            return False
