"""The gateway and the pretend provider as a stranger uses them: over HTTP, with nothing shared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from edge.backoff import Backoff

TIMEOUT = httpx.Timeout(10.0, pool=30.0)
LIMITS = httpx.Limits(max_connections=32, max_keepalive_connections=16)
# A stream that says nothing for longer than two heartbeats is dead.
STREAM_TIMEOUT = httpx.Timeout(10.0, read=60.0)

# A gateway that is started again is away for seconds.
PATIENCE_S = 30.0


class BadAnswer(Exception):
    """An HTTP answer that a correct system does not give; the text says which."""


@dataclass(frozen=True, slots=True)
class Session:
    """
    Who the run is, for the gateway. Give one of the two.

    `login_url` is a one-time login link; the run opens it as a browser would and takes the
    cookie from the answer, and the project from the address that it is sent on to. `bearer` is
    a JWT and needs `project`.
    """

    login_url: str | None = None
    bearer: str | None = None
    project: str | None = None


class Gateway:
    """The gateway's public API for one project."""

    def __init__(self, client: httpx.AsyncClient, project: str) -> None:
        self._client = client
        self._base = f"/projects/{project}"

    async def create(self, pretend: dict[str, Any], key: str) -> str:
        """Make a task and return its id; the key makes a repeat harmless."""
        body = {
            "provider": "replicate",
            "model": "pretend/film",
            "input": {"prompt": f"scripted job {key}", "pretend": pretend},
        }
        answer = await self._post("/tasks", body, {"idempotency-key": key})
        return str(answer["task"]["id"])

    async def cancel(self, task: str) -> None:
        """Ask for a task to be canceled."""
        await self._post(f"/tasks/{task}/cancel", {})

    async def retry(self, task: str, reason: str) -> None:
        """Start another attempt of a task."""
        await self._post(f"/tasks/{task}/retry", {"reason": reason}, {"idempotency-key": task})

    async def task(self, task: str) -> dict[str, Any]:
        """Return a task's snapshot."""
        answer: dict[str, Any] = (await self._get(f"/tasks/{task}"))["task"]
        return answer

    async def head(self) -> int:
        """Return the id of the project's last event."""
        return int((await self._get("/tasks", {"limit": "1"}))["last_event_id"])

    @asynccontextmanager
    async def events(self, cursor: int | None) -> AsyncIterator[httpx.Response]:
        """Open the project's stream after `cursor`, or from now on."""
        headers = {"accept": "text/event-stream"}
        if cursor is not None:
            headers["last-event-id"] = str(cursor)
        async with self._client.stream(
            "GET", f"{self._base}/events", headers=headers, timeout=STREAM_TIMEOUT
        ) as response:
            if response.status_code != 200:
                await response.aread()
                raise _bad(response)
            yield response

    async def _get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        return await self._ask("GET", path, params=query)

    async def _post(
        self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        return await self._ask("POST", path, json=body, headers=headers)

    async def _ask(self, method: str, path: str, **what: Any) -> dict[str, Any]:
        """Ask until there is an answer, for a while: every request here may be repeated."""
        backoff = Backoff(first=0.1, cap=2.0)
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = await self._client.request(method, self._base + path, **what)
                if answer.status_code not in (502, 503, 504) or time.monotonic() > give_up_at:
                    return _object(answer)
            except httpx.TransportError:
                if time.monotonic() > give_up_at:
                    raise
            await asyncio.sleep(backoff.next())


class Provider:
    """What the pretend provider tells about itself."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def faults(self) -> dict[str, int]:
        """Return how often each kind of fault was made to happen."""
        counts: dict[str, int] = _object(await self._client.get("/pretend/report"))["faults"]
        return counts

    async def job(self, key: str) -> dict[str, Any]:
        """Return {"submissions", "jobs"} of one key."""
        return _object(await self._client.get("/pretend/jobs", params={"key": key}))


@asynccontextmanager
async def open_gateway(url: str, session: Session) -> AsyncIterator[Gateway]:
    """
    Log in and return the gateway.

    Raises `BadAnswer` when the session is refused, `httpx.HTTPError` when nobody answers.
    """
    parts = urlsplit(url)
    headers = {"origin": f"{parts.scheme}://{parts.netloc}"}
    if session.bearer is not None:
        headers["authorization"] = f"Bearer {session.bearer}"
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=TIMEOUT, limits=LIMITS, follow_redirects=False
    ) as client:
        project = session.project
        if session.login_url is not None:
            project = await _log_in(client, session.login_url) or project
        if project is None:
            raise BadAnswer("the session names no project")
        yield Gateway(client, project)


@asynccontextmanager
async def open_provider(url: str) -> AsyncIterator[Provider]:
    """Return the pretend provider's control API."""
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT, limits=LIMITS) as client:
        yield Provider(client)


async def _log_in(client: httpx.AsyncClient, login_url: str) -> str | None:
    response = await client.get(login_url)
    if not response.is_redirect or not client.cookies:
        raise BadAnswer(f"the login link answered {response.status_code} and set no cookie")
    target = urlsplit(response.headers.get("location", ""))
    return next(iter(parse_qs(target.query).get("project", [])), None)


def _object(response: httpx.Response) -> dict[str, Any]:
    if not response.is_success:
        raise _bad(response)
    body = response.json()
    if not isinstance(body, dict):
        raise BadAnswer(f"{response.request.method} {response.url.path}: not an object")
    return body


def _bad(response: httpx.Response) -> BadAnswer:
    try:
        code = response.json().get("code", "")
    except (ValueError, AttributeError):
        code = ""
    place = f"{response.request.method} {response.url.path}"
    return BadAnswer(f"{place}: {response.status_code} {code}".rstrip())
