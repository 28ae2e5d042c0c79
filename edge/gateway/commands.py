"""
What a client may say over a WebSocket, each in one JSON text of at most 4 KiB:

    {"type":"subscribe","request_id":r,"after":c}   go on after the event c; null: from now on
    {"type":"cancel","request_id":r,"task_id":t}    ask for a task's cancellation

Each is answered by one reply with its `request_id`, {"ok":true,…} or {"ok":false,"code":…} with
the codes of the HTTP interface. A request that is repeated under its id has no second effect: on
one connection it gets the same reply again, and on another one a cancellation that was asked for
is the same cancellation.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import OrderedDict
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from edge import errors, logs
from edge.buckets import Buckets, Rate
from edge.gateway import asked, metrics, problems
from edge.gateway.access import Access
from edge.gateway.problems import Problem
from edge.gateway.socket_stream import SocketStream
from edge.gateway.store import Applied, Grant, Store

logger = logs.get(__name__)

# Of one user, over all connections.
RATE: Final = Rate(per_second=5, burst=20)
# So many requests of a connection are remembered with their replies.
REMEMBERED: Final = 32

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,64}")
# Worth another try under the same id, so they are not remembered.
_PASSING = frozenset({429, 500, 503})


class Request(NamedTuple):
    """A request that can be understood."""

    kind: str
    request_id: str
    after: int | None
    task: UUID | None


class Answer(NamedTuple):
    """A request and its reply, which is None while it is being worked on."""

    request: Request
    reply: bytes | None


Answered = OrderedDict[str, Answer]


class Commands:
    """Does what clients ask for over WebSockets."""

    def __init__(self, store: Store, access: Access) -> None:
        self._store = store
        self._access = access
        self._rates = Buckets(RATE)
        self._running: set[asyncio.Task[None]] = set()

    def hear(self, stream: SocketStream, text: bytes) -> None:
        """Take in one message; the reply may come later."""
        request_id = None
        try:
            body = _json(text)
            request_id = _request_id(body)
            request = _request(body, request_id)
            answered = stream.answered
            if answered is None:
                answered = stream.answered = OrderedDict()
            known = answered.get(request_id)
            if known is None:
                self._begin(stream, request, answered)
            elif known.request != request:
                raise Problem("key_reused", "The request_id belongs to a different request.")
            elif known.reply is not None:
                stream.reply(known.reply)
        except Problem as problem:
            stream.reply(_refusal(request_id, problem))

    def _begin(self, stream: SocketStream, request: Request, answered: Answered) -> None:
        grant = stream.grant
        wait = self._rates.take(f"{grant.tenant}/{grant.user}")
        if wait:
            raise Problem("too_many_requests", retry_after=wait)
        answered[request.request_id] = Answer(request, None)
        if len(answered) > REMEMBERED:
            answered.popitem(last=False)
        if request.task is None:
            self._reply(stream, request, _success(request, {}))
            stream.go_on_after(request.after)
        else:
            work = self._cancel(stream, request, request.task)
            task = asyncio.get_running_loop().create_task(work)
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _cancel(self, stream: SocketStream, request: Request, task: UUID) -> None:
        trace_id = uuid.uuid4().hex
        with logs.tracing(trace_id):
            try:
                body = await self._canceled(stream, task, trace_id)
            except Problem as problem:
                self._refuse(stream, request, problem, trace_id)
            except errors.EdgeError as error:
                self._refuse(stream, request, problems.of(error), trace_id)
            except Exception:
                logger.exception("command failed")
                self._refuse(stream, request, Problem("internal"), trace_id)
            else:
                self._reply(stream, request, _success(request, body))

    async def _canceled(self, stream: SocketStream, task: UUID, trace_id: str) -> dict[str, Any]:
        if not stream.may_command:
            raise Problem("forbidden", "A one-time token opens a stream and nothing else.")
        await self._access.require(stream.grant, change=True)
        applied = await self._store.cancel(stream.grant, task, trace_id)
        return await outcome(self._store, stream.grant, applied)

    def _reply(self, stream: SocketStream, request: Request, reply: bytes) -> None:
        if stream.answered is not None and request.request_id in stream.answered:
            stream.answered[request.request_id] = Answer(request, reply)
        stream.reply(reply)

    def _refuse(
        self, stream: SocketStream, request: Request, problem: Problem, trace_id: str
    ) -> None:
        reply = _refusal(request.request_id, problem, trace_id)
        self._reply(stream, request, reply)
        if problem.status in _PASSING and stream.answered is not None:
            stream.answered.pop(request.request_id, None)

    async def close(self) -> None:
        """End what is under way."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def outcome(store: Store, grant: Grant, applied: Applied) -> dict[str, Any]:
    """Return what a caller is told of a command: the task as it is now, and the verdict."""
    if applied.verdict == "refused":
        raise Problem("refused")
    found = await store.task(grant.tenant, grant.project, applied.task_id)
    if found is None:
        raise Problem("not_found")
    return {**found, "verdict": applied.verdict}


def _json(text: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Problem("bad_request", "The message is not JSON.") from None
    if not isinstance(body, dict):
        raise Problem("bad_request", "The message must be an object.")
    return body


def _request_id(body: dict[str, Any]) -> str:
    request_id = body.get("request_id")
    if not isinstance(request_id, str) or not _REQUEST_ID.fullmatch(request_id):
        raise Problem("bad_request", "request_id must be 1 to 64 visible ASCII characters.")
    return request_id


def _request(body: dict[str, Any], request_id: str) -> Request:
    match body.get("type"):
        case "subscribe":
            after = body.get("after")
            if after is not None and not asked.is_cursor(after):
                raise Problem("bad_cursor")
            return Request("subscribe", request_id, after, None)
        case "cancel":
            return Request("cancel", request_id, None, _task(body.get("task_id")))
    raise Problem("bad_request", "type must be subscribe or cancel.")


def _task(text: object) -> UUID:
    try:
        return asked.exact_id(text if isinstance(text, str) else "")
    except ValueError:
        raise Problem("not_found") from None


def _success(request: Request, body: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": "reply", "request_id": request.request_id, "ok": True, **body})


def _refusal(request_id: str | None, problem: Problem, trace_id: str | None = None) -> bytes:
    metrics.REFUSED.labels(problem.code).inc()
    reply: dict[str, Any] = {
        "type": "reply",
        "request_id": request_id,
        "ok": False,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
    }
    if problem.retry_after is not None:
        reply["retry_after"] = problem.seconds()
    if trace_id is not None:
        reply["trace_id"] = trace_id
    return orjson.dumps(reply)
