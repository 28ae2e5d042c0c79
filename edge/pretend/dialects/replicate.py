"""
Replicate's HTTP API: predictions, their statuses, and webhooks signed by Standard Webhooks.

    POST /v1/predictions                              also /v1/models/{owner}/{name}/predictions
    GET  /v1/predictions  /v1/predictions/{id}        and /v1/deployments/{owner}/{name}/predictions
    POST /v1/predictions/{id}/cancel
    GET  /v1/webhooks/default/secret

A webhook's body is the prediction itself. Its id stays the same when it is sent again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from edge.pretend.jobs import Job, Moment, Phase, State, Target
from edge.pretend.studio import PollAnswer, Refusal, Studio, Submission

WORDS = {
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

_DURATION = re.compile(r"(?:(?P<h>\d{1,4})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,8})s)?")
_WAIT = re.compile(r"wait(?:=(?P<seconds>\d{1,3}))?")

Handler = Callable[[Request], Awaitable[Response]]


class Replicate:
    """The dialect: routes in, words and signatures out."""

    file_lifetime_s = RETENTION_S

    def __init__(self, token: str, secret: str) -> None:
        if not token:
            raise ValueError("the API token must not be empty")
        if not secret.startswith("whsec_"):
            raise ValueError("the webhook secret must start with whsec_")
        self._token = token
        self._secret = secret
        self._key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)

    def routes(self, studio: Studio) -> list[BaseRoute]:
        """Return the API's routes over this studio."""
        api = _Api(self, studio)
        places: list[tuple[str, str, Handler]] = [
            ("POST", "/v1/predictions", api.create),
            ("POST", "/v1/models/{owner}/{name}/predictions", api.create),
            ("POST", "/v1/deployments/{owner}/{name}/predictions", api.create),
            ("GET", "/v1/predictions", api.list),
            ("GET", "/v1/predictions/{id}", api.get),
            ("POST", "/v1/predictions/{id}/cancel", api.cancel),
            ("GET", "/v1/webhooks/default/secret", api.secret),
        ]
        return [
            Route(path, self._authenticated(handler), methods=[method])
            for method, path, handler in places
        ]

    def callback_body(self, job: Job, state: State) -> bytes:
        """Return the prediction as of this state."""
        return orjson.dumps(self.prediction(job, state))

    def callback_headers(
        self, callback_id: str, at: datetime, body: bytes, *, forged: bool
    ) -> dict[str, str]:
        """Sign the raw body as Standard Webhooks says."""
        stamp = str(int(at.timestamp()))
        key = hashlib.sha256(self._key).digest() if forged else self._key
        content = b".".join((callback_id.encode(), stamp.encode(), body))
        signature = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
        return {
            "content-type": "application/json",
            "webhook-id": callback_id,
            "webhook-timestamp": stamp,
            "webhook-signature": f"v1,{signature}",
        }

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
            "status": state.odd_word or WORDS[state.phase],
            "created_at": _stamp(job.created_at),
            "started_at": _stamp(state.started_at),
            "completed_at": _stamp(state.completed_at),
            "deadline": _stamp(job.deadline),
            "metrics": _metrics(job, state),
            "urls": {"cancel": f"{api}/cancel", "get": api, "web": f"{job.base_url}/p/{job.id}"},
        }

    @property
    def webhook_secret(self) -> str:
        """Return the account's one signing key, as the API shows it."""
        return self._secret

    def _authenticated(self, handler: Handler) -> Handler:
        async def guard(request: Request) -> Response:
            kind, _, token = request.headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(
                token.strip().encode(), self._token.encode()
            ):
                return _problem(401, "Unauthenticated", "You did not pass a valid API token")
            return await handler(request)

        return guard


class _Api:
    """The handlers of one studio."""

    def __init__(self, dialect: Replicate, studio: Studio) -> None:
        self._dialect = dialect
        self._studio = studio

    async def create(self, request: Request) -> Response:
        try:
            submission = await self._read(request)
        except _Invalid as invalid:
            return _problem(422, "Input validation failed", str(invalid))
        answer = await self._studio.submit(submission)
        if isinstance(answer, Refusal):
            return _problem(answer.status, answer.title, answer.detail, answer.retry_after)
        wait = _WAIT.fullmatch(request.headers.get("prefer", "").strip())
        if wait is not None:
            seconds = min(int(wait["seconds"] or LONGEST_WAIT_S), LONGEST_WAIT_S)
            await self._studio.clock.wait(answer.finished, seconds * self._studio.clock.speed)
        return _json(self._dialect.prediction(answer, answer.state), 201)

    async def get(self, request: Request) -> Response:
        job = self._studio.book.get(request.path_params["id"])
        if job is None:
            return _not_found()
        poll = await self._studio.poll(job)
        if poll.raw is not None:
            return Response(poll.raw, media_type=poll.media_type)
        if poll.status != 200:
            return _problem(poll.status, "Error", poll.detail, poll.retry_after)
        return _json(self._shown(job, poll))

    async def list(self, request: Request) -> Response:
        jobs = list(self._studio.book.newest_first())
        start = request.query_params.get("cursor", "0")
        first = int(start) if start.isdecimal() and len(start) < 9 else 0
        here = f"{_base_url(request)}/v1/predictions?cursor="
        return _json(
            {
                "previous": f"{here}{max(0, first - PAGE)}" if first else None,
                "next": f"{here}{first + PAGE}" if first + PAGE < len(jobs) else None,
                "results": [
                    self._dialect.prediction(job, job.state, removed=self._removed(job))
                    for job in jobs[first : first + PAGE]
                ],
            }
        )

    async def cancel(self, request: Request) -> Response:
        job = self._studio.book.get(request.path_params["id"])
        if job is None:
            return _not_found()
        await self._studio.cancel(job)
        return _json(self._dialect.prediction(job, job.state, removed=self._removed(job)))

    async def secret(self, request: Request) -> Response:
        return _json({"key": self._dialect.webhook_secret})

    def _shown(self, job: Job, poll: PollAnswer) -> dict[str, Any]:
        return self._dialect.prediction(job, poll.state, removed=self._removed(job))

    def _removed(self, job: Job) -> bool:
        return self._studio.ended_longer_ago(job, RETENTION_S)

    async def _read(self, request: Request) -> Submission:
        try:
            body = orjson.loads(await request.body())
        except ValueError:
            raise _Invalid("The request body is not JSON") from None
        if not isinstance(body, dict) or not isinstance(body.get("input"), dict):
            raise _Invalid("input: must be an object")
        model, version = _model_and_version(request, body)
        return Submission(
            model=model,
            version=version,
            input=body["input"],
            target=_target(body),
            base_url=_base_url(request),
            lifetime_s=_lifetime(request.headers.get("cancel-after")),
        )


class _Invalid(ValueError):
    """The request is answered 422 with this message."""


def _model_and_version(request: Request, body: dict[str, Any]) -> tuple[str, str]:
    if "owner" in request.path_params:
        model = f"{request.path_params['owner']}/{request.path_params['name']}"
        return model, "hidden"
    version = body.get("version")
    if not isinstance(version, str) or not version:
        raise _Invalid("version: is required")
    model, _, pinned = version.partition(":")
    if "/" not in model:
        return "pretend/model", version
    return model, pinned or hashlib.sha256(model.encode()).hexdigest()


def _target(body: dict[str, Any]) -> Target:
    url = body.get("webhook")
    if url is None:
        return Target()
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise _Invalid("webhook: must be a URL")
    wanted = body.get("webhook_events_filter")
    if wanted is None:
        return Target(url, DEFAULT_MOMENTS)
    try:
        return Target(url, frozenset(Moment(name) for name in wanted))
    except (TypeError, ValueError):
        raise _Invalid(f"webhook_events_filter: must be among {', '.join(Moment)}") from None


def _lifetime(cancel_after: str | None) -> float | None:
    if cancel_after is None:
        return None
    text = cancel_after.strip()
    if text.isdecimal() and len(text) < 9:
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise _Invalid("Cancel-After: must be a duration such as 90s or 5m")
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


def _base_url(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _json(body: object, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")


def _problem(status: int, title: str, detail: str, retry_after: int | None = None) -> Response:
    response = _json({"title": title, "detail": detail, "status": status}, status)
    if retry_after is not None:
        response.headers["retry-after"] = str(retry_after)
    return response


def _not_found() -> Response:
    return _problem(404, "Not found", "The requested resource could not be found.")
