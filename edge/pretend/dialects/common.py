"""
What all dialects have in common, so that one of them says only what its provider does differently.

A dialect is a `Dialect` with its provider's paths and words: how a submission is read, how a job is
shown, what a callback says and how it is signed. It decides nothing; the studio does.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from edge.pretend.callbacks import Sending
from edge.pretend.files import Truncated
from edge.pretend.jobs import Job, Moment, Phase, State, Target
from edge.pretend.studio import PollAnswer, Refusal, Studio, Submission

LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
PIECES = 8

Handler = Callable[[Request], Awaitable[Response]]
Words = dict[Phase, str]


@dataclass(frozen=True, slots=True)
class Account:
    """
    A caller's account: its API token and its signing secret as the provider shows it.

    `endpoint` takes the callbacks of providers where they are the account's, not the job's;
    `audience` is whom signed tokens are for, where there are any.
    """

    token: str
    secret: str = ""
    endpoint: str | None = None
    audience: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A submission as it came: the request and its body, a JSON object."""

    request: Request
    body: dict[str, Any]

    @property
    def base_url(self) -> str:
        """Return where this provider is reached."""
        return base_url(self.request)


class Invalid(ValueError):
    """The submission is refused with this message."""


class Dialect:
    """One provider's API: its routes, its words, how it signs, how long it keeps files."""

    # POST; placeholders are Starlette's
    submits: ClassVar[tuple[str, ...]] = ()
    # GET; the job's id is {id} unless `find` says otherwise
    asks: ClassVar[str] = ""
    cancels: ClassVar[tuple[str, str] | None] = None
    cancelable: ClassVar[frozenset[Phase]] = frozenset({Phase.QUEUED, Phase.RUNNING})
    # A job that was canceled, or one that was over, is not found any more.
    cancel_erases: ClassVar[bool] = False
    cancel_erases_ended: ClassVar[bool] = False

    # What a caller can tell apart, and what its provider documents.
    shows_queue: ClassVar[bool] = True
    shows_progress: ClassVar[bool] = False
    documents_cancel: ClassVar[bool] = True
    giving_up_cancels: ClassVar[bool] = False
    tells_failure: ClassVar[bool] = True
    signs: ClassVar[bool] = False
    signs_time: ClassVar[bool] = True

    words: ClassVar[Words] = {}
    created_status: ClassVar[int] = 200
    refused_status: ClassVar[int] = 400
    file_lifetime_s: ClassVar[float] = 86_400.0
    moments: ClassVar[frozenset[Moment]] = frozenset({Moment.START, Moment.COMPLETED})
    retry_pauses: ClassVar[tuple[float, ...]] = (1.0, 2.0, 4.0)
    id_prefix: ClassVar[str] = ""
    id_alphabet: ClassVar[str] = LETTERS
    id_length: ClassVar[int] = 26

    def __init__(self, account: Account) -> None:
        if not account.token:
            raise ValueError("the API token must not be empty")
        self.account = account

    # what a dialect says

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for. Raises `Invalid`."""
        raise NotImplementedError

    def created(self, job: Job) -> Any:
        """Return the answer to a submission."""
        return self.shown(job, job.state)

    def shown(self, job: Job, state: State) -> Any:
        """Return the answer to a poll."""
        raise NotImplementedError

    def shown_status(self, state: State) -> int:
        """Return the HTTP status of the answer to a poll."""
        return 200

    def told(self, job: Job, state: State) -> Any | None:
        """Return what a callback says of this state, or None where there is none."""
        return self.shown(job, state)

    def signed(self, sending: Sending) -> dict[str, str]:
        """Return the headers that sign a callback."""
        return {}

    def problem(self, status: int, detail: str) -> Any:
        """Return the body of an error."""
        return {"error": {"message": detail}}

    def canceled(self, job: Job) -> tuple[int, Any]:
        """Return the answer to a cancellation that was taken."""
        return 200, self.shown(job, job.state)

    def cancel_refused(self, job: Job) -> tuple[int, Any]:
        """Return the answer to a cancellation that comes too late."""
        return 400, self.problem(400, f"The job is {self.word(job.state)}.")

    def missing(self) -> tuple[int, Any]:
        """Return the answer to a question about a job that is not there."""
        return 404, self.problem(404, "The requested resource could not be found.")

    def accepts(self, status: int) -> bool:
        """Answer whether this answer to a callback is a success."""
        return 200 <= status < 300

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's token."""
        return self.has_token(request, "authorization", "Bearer ")

    async def body(self, request: Request) -> dict[str, Any]:
        """Return what a submission says. Raises `Invalid`."""
        return await body_of(request)

    def find(self, request: Request, studio: Studio) -> Job | None:
        """Return the job that a request is about."""
        return studio.book.get(request.path_params["id"])

    def more(self, api: Api) -> list[BaseRoute]:
        """Return further routes."""
        return []

    # what follows from it

    def routes(self, studio: Studio) -> list[BaseRoute]:
        """Return the API's routes over this studio."""
        api = Api(self, studio)
        routes: list[BaseRoute] = [api.route("POST", path, api.create) for path in self.submits]
        if self.asks:
            routes.append(api.route("GET", self.asks, api.ask))
        if self.cancels is not None:
            method, path = self.cancels
            routes.append(api.route(method, path, api.cancel))
        return routes + self.more(api)

    def new_id(self) -> str:
        """Return an id for a job."""
        letters = (secrets.choice(self.id_alphabet) for _ in range(self.id_length))
        return self.id_prefix + "".join(letters)

    def callback_body(self, job: Job, state: State) -> bytes | None:
        """Return the body of a callback about this state, or None where there is none."""
        told = self.told(job, state)
        return None if told is None else orjson.dumps(told)

    def callback_headers(self, sending: Sending) -> dict[str, str]:
        """Return the headers of a callback."""
        return self.signed(sending)

    def word(self, state: State) -> str:
        """Return the provider's word for where a job stands."""
        return state.odd_word or self.words[state.phase]

    def has_token(self, request: Request, header: str, prefix: str) -> bool:
        """Answer whether a header holds the account's token."""
        given = request.headers.get(header, "")
        wanted = prefix + self.account.token
        return hmac.compare_digest(given.encode(), wanted.encode())

    def submission(
        self,
        asked: Asked,
        *,
        model: str = "pretend",
        url: object = None,
        echo: object = None,
        seconds: float | None = None,
    ) -> Submission:
        """Return a submission that calls back at `url`, else at the account's endpoint."""
        if url is not None and (
            not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https")
        ):
            raise Invalid("the callback must be a URL")
        if echo is not None and not isinstance(echo, str):
            raise Invalid("what is echoed must be a text")
        return Submission(
            model=model,
            version="1",
            input=asked.body,
            target=Target(url or self.account.endpoint, self.moments),
            base_url=asked.base_url,
            lifetime_s=seconds,
            echo=echo,
        )


class Api:
    """The handlers of one studio."""

    def __init__(self, dialect: Dialect, studio: Studio) -> None:
        self.dialect = dialect
        self.studio = studio

    def route(self, method: str, path: str, handler: Handler) -> Route:
        """Return a route for callers who have the token."""

        async def guard(request: Request) -> Response:
            if not self.dialect.authorised(request):
                return self.problem(401, "The token is not valid.")
            return await handler(request)

        return Route(path, guard, methods=[method])

    async def create(self, request: Request) -> Response:
        """Take a submission."""
        dialect = self.dialect
        try:
            submission = dialect.read(Asked(request, await dialect.body(request)))
        except Invalid as invalid:
            return self.problem(dialect.refused_status, str(invalid))
        answer = await self.studio.submit(submission)
        if isinstance(answer, Refusal):
            status = dialect.refused_status if answer.status == 422 else answer.status
            return self.problem(status, answer.detail, answer.retry_after)
        return reply(dialect.created(answer), dialect.created_status)

    async def ask(self, request: Request) -> Response:
        """Answer a poll."""
        job = self.job(request)
        if job is None:
            return self.missing()
        return self.tell(await self.studio.poll(job), job)

    async def cancel(self, request: Request) -> Response:
        """Take a cancellation, or refuse it; a job that is over may be erased by it."""
        dialect, job = self.dialect, self.job(request)
        if job is None:
            return self.missing()
        phase = job.state.phase
        if phase.is_end and dialect.cancel_erases_ended:
            job.erased = True
        elif phase not in dialect.cancelable:
            job.cancels += 1
            status, body = dialect.cancel_refused(job)
            return reply(body, status)
        else:
            await self.studio.cancel(job)
            job.erased = dialect.cancel_erases
        status, body = dialect.canceled(job)
        return Response(status_code=status) if body is None else reply(body, status)

    def job(self, request: Request) -> Job | None:
        """Return the job that a request is about, if it was not erased."""
        job = self.dialect.find(request, self.studio)
        return None if job is None or job.erased else job

    def tell(
        self, poll: PollAnswer, job: Job, shown: Callable[[Job, State], Any] | None = None
    ) -> Response:
        """Put what the studio answers to a question about a job into the provider's words."""
        dialect = self.dialect
        if poll.raw is not None:
            return Response(poll.raw, media_type=poll.media_type)
        if poll.status == 404:
            return self.missing()
        if poll.status != 200:
            return self.problem(poll.status, poll.detail, poll.retry_after)
        body = orjson.dumps((shown or dialect.shown)(job, poll.state))
        status = dialect.shown_status(poll.state) if shown is None else 200
        if poll.cut:
            return Truncated(body, status, media_type="application/json")
        if poll.drip_s:
            return StreamingResponse(
                _dripping(body, poll.drip_s),
                status,
                {"content-length": str(len(body))},
                "application/json",
            )
        return Response(body, status, media_type="application/json")

    def missing(self) -> Response:
        """Answer that there is no such job."""
        status, body = self.dialect.missing()
        return reply(body, status)

    def problem(self, status: int, detail: str, retry_after: int | None = None) -> Response:
        """Answer with an error of the provider's."""
        response = reply(self.dialect.problem(status, detail), status)
        if retry_after is not None:
            response.headers["retry-after"] = str(retry_after)
        return response


async def body_of(request: Request) -> dict[str, Any]:
    """Return a request's body. Raises `Invalid` if it is no JSON object."""
    try:
        body = orjson.loads(await request.body())
    except ValueError:
        raise Invalid("The request body is not JSON") from None
    if not isinstance(body, dict):
        raise Invalid("The request body must be an object")
    return body


def text(body: dict[str, Any], name: str) -> str:
    """Return a field that must be there. Raises `Invalid`."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise Invalid(f"{name}: is required")
    return value


def reply(body: object, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(orjson.dumps(body), status, media_type="application/json")


def base_url(request: Request) -> str:
    """Return where this provider is reached, as the caller reached it."""
    return str(request.base_url).rstrip("/")


def seconds(at: datetime | None) -> int | None:
    """Return a moment in Unix seconds."""
    return None if at is None else int(at.timestamp())


def iso(at: datetime | None) -> str | None:
    """Return a moment as the internet writes it."""
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _dripping(body: bytes, during_s: float) -> AsyncIterator[bytes]:
    size = max(1, -(-len(body) // PIECES))
    for start in range(0, len(body), size):
        await asyncio.sleep(during_s / PIECES)
        yield body[start : start + size]
