"""
Replicate's HTTP API: predictions, their statuses, and webhooks signed by Standard Webhooks.

    POST /v1/predictions                              also /v1/models/{owner}/{name}/predictions
    GET  /v1/predictions  /v1/predictions/{id}        and /v1/deployments/{owner}/{name}/predictions
    POST /v1/predictions/{id}/cancel
    GET  /v1/webhooks/default/secret

A webhook's body is the prediction itself. Its id stays the same when it is sent again.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from edge.pretend.callbacks import Sending
from edge.pretend.dialects import common, signing
from edge.pretend.dialects.common import Account, Api, Asked, Dialect, Invalid, reply
from edge.pretend.jobs import Job, Moment, Phase, State, Target
from edge.pretend.studio import Refusal, Studio, Submission

_WORDS = {
    Phase.QUEUED: "starting",
    Phase.RUNNING: "processing",
    Phase.SUCCEEDED: "succeeded",
    Phase.FAILED: "failed",
    Phase.CANCELED: "canceled",
    Phase.ABORTED: "aborted",
}
DEFAULT_MOMENTS = frozenset({Moment.OUTPUT, Moment.COMPLETED})
RETENTION_S = 3600.0
PAGE = 100
LONGEST_WAIT_S = 60

_TITLES = {
    401: "Unauthenticated",
    404: "Not found",
    422: "Input validation failed",
    429: "Too many requests",
}

_DURATION = re.compile(r"(?:(?P<h>\d{1,4})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,8})s)?")
_WAIT = re.compile(r"wait(?:=(?P<seconds>\d{1,3}))?")


class Replicate(Dialect):
    """The dialect: routes in, words and signatures out."""

    submits = (
        "/v1/predictions",
        "/v1/models/{owner}/{name}/predictions",
        "/v1/deployments/{owner}/{name}/predictions",
    )
    asks = "/v1/predictions/{id}"
    words = _WORDS
    shows_progress = True
    giving_up_cancels = True
    signs = True
    created_status = 201
    refused_status = 422
    file_lifetime_s = RETENTION_S
    retry_pauses = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._key = signing.standard_key(account.secret)

    def routes(self, studio: Studio) -> list[BaseRoute]:
        """Return the API's routes over this studio."""
        api = _Api(self, studio)
        return [
            *(api.route("POST", path, api.create) for path in self.submits),
            api.route("GET", "/v1/predictions", api.list),
            api.route("GET", self.asks, api.ask),
            api.route("POST", "/v1/predictions/{id}/cancel", api.cancel),
            api.route("GET", "/v1/webhooks/default/secret", api.secret),
        ]

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        if not isinstance(body.get("input"), dict):
            raise Invalid("input: must be an object")
        model, version = _model_and_version(asked.request, body)
        return Submission(
            model=model,
            version=version,
            input=body["input"],
            target=_target(body),
            base_url=asked.base_url,
            lifetime_s=_lifetime(asked.request.headers.get("cancel-after")),
        )

    def shown(self, job: Job, state: State) -> dict[str, Any]:
        """Return the prediction as of this state."""
        return self.prediction(job, state)

    def problem(self, status: int, detail: str) -> dict[str, Any]:
        """Return an error as Replicate words it."""
        return {"title": _TITLES.get(status, "Error"), "detail": detail, "status": status}

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's token, however it is spelled."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and token.strip() == self.account.token

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign the raw body as Standard Webhooks says."""
        return signing.standard_webhooks(self._key, sending)

    def prediction(self, job: Job, state: State, *, removed: bool = False) -> dict[str, Any]:
        """Return the prediction object; what Replicate deletes after an hour may be gone."""
        api = f"{job.base_url}/v1/predictions/{job.id}"
        return {
            "id": job.id,
            "model": job.model,
            "version": job.version,
            "input": {} if removed else job.input,
            "logs": "" if removed else _logs(state),
            "output": job.file_url if state.has_output and not removed else None,
            "data_removed": removed,
            "error": state.error,
            "source": "api",
            "status": self.word(state),
            "created_at": _stamp(job.created_at),
            "started_at": _stamp(state.started_at),
            "completed_at": _stamp(state.completed_at),
            "deadline": _stamp(job.deadline),
            "metrics": _metrics(job, state),
            "urls": {"cancel": f"{api}/cancel", "get": api, "web": f"{job.base_url}/p/{job.id}"},
        }


class _Api(Api):
    """The handlers of one studio."""

    def __init__(self, dialect: Replicate, studio: Studio) -> None:
        super().__init__(dialect, studio)
        self._replicate = dialect

    async def create(self, request: Request) -> Response:
        """Take a submission; a caller may wait for its end."""
        try:
            submission = self.dialect.read(Asked(request, await common.body_of(request)))
        except Invalid as invalid:
            return self.problem(422, str(invalid))
        answer = await self.studio.submit(submission)
        if isinstance(answer, Refusal):
            return self.problem(answer.status, answer.detail, answer.retry_after)
        wait = _WAIT.fullmatch(request.headers.get("prefer", "").strip())
        if wait is not None:
            seconds = min(int(wait["seconds"] or LONGEST_WAIT_S), LONGEST_WAIT_S)
            await self.studio.wait_really(answer.finished, seconds)
        return reply(self.dialect.created(answer), 201)

    async def ask(self, request: Request) -> Response:
        """Answer a poll; of a job that was over an hour ago little is left."""
        job = self.job(request)
        if job is None:
            return self.missing()
        return self.tell(await self.studio.poll(job), job, self._shown)

    async def list(self, request: Request) -> Response:
        """Answer a page of all predictions, the newest first."""
        jobs = list(self.studio.book.newest_first())
        start = request.query_params.get("cursor", "0")
        first = int(start) if start.isdecimal() and len(start) < 9 else 0
        here = f"{common.base_url(request)}/v1/predictions?cursor="
        return reply(
            {
                "previous": f"{here}{max(0, first - PAGE)}" if first else None,
                "next": f"{here}{first + PAGE}" if first + PAGE < len(jobs) else None,
                "results": [self._shown(job, job.state) for job in jobs[first : first + PAGE]],
            }
        )

    async def cancel(self, request: Request) -> Response:
        """Cancel a prediction; one that is over is shown as it is."""
        job = self.job(request)
        if job is None:
            return self.missing()
        await self.studio.cancel(job)
        return reply(self._shown(job, job.state))

    async def secret(self, request: Request) -> Response:
        """Answer the account's one signing key."""
        return reply({"key": self.dialect.account.secret})

    def _shown(self, job: Job, state: State) -> dict[str, Any]:
        removed = self.studio.ended_longer_ago(job, RETENTION_S)
        return self._replicate.prediction(job, state, removed=removed)


def _model_and_version(request: Request, body: dict[str, Any]) -> tuple[str, str]:
    if "owner" in request.path_params:
        model = f"{request.path_params['owner']}/{request.path_params['name']}"
        return model, "hidden"
    version = body.get("version")
    if not isinstance(version, str) or not version:
        raise Invalid("version: is required")
    model, _, pinned = version.partition(":")
    if "/" not in model:
        return "pretend/model", version
    return model, pinned or hashlib.sha256(model.encode()).hexdigest()


def _target(body: dict[str, Any]) -> Target:
    url = body.get("webhook")
    if url is None:
        return Target()
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise Invalid("webhook: must be a URL")
    wanted = body.get("webhook_events_filter")
    if wanted is None:
        return Target(url, DEFAULT_MOMENTS)
    try:
        return Target(url, frozenset(Moment(name) for name in wanted))
    except (TypeError, ValueError):
        raise Invalid(f"webhook_events_filter: must be among {', '.join(Moment)}") from None


def _lifetime(cancel_after: str | None) -> float | None:
    if cancel_after is None:
        return None
    text = cancel_after.strip()
    if text.isdecimal() and len(text) < 9:
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise Invalid("Cancel-After: must be a duration such as 90s or 5m")
    hours, minutes, seconds = (int(match[unit] or 0) for unit in "hms")
    return timedelta(hours=hours, minutes=minutes, seconds=seconds).total_seconds()


def _logs(state: State) -> str:
    """Return what tqdm would have printed; the only progress that Replicate shows."""
    if state.started_at is None:
        return ""
    percent = state.progress
    bar = "█" * (percent // 10) + " " * (10 - percent // 10)
    return f"Using seed: 1\n{percent:3d}%|{bar}| {percent}/100 [00:01<00:01, 20.00it/s]\n"


def _metrics(job: Job, state: State) -> dict[str, float]:
    if state.started_at is None or state.completed_at is None:
        return {}
    return {
        "predict_time": round((state.completed_at - state.started_at).total_seconds(), 6),
        "total_time": round((state.completed_at - job.created_at).total_seconds(), 6),
    }


def _stamp(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="microseconds").replace("+00:00", "Z")
