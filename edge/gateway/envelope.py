"""What surrounds every request: its trace id, the take-over, and errors told as problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge import errors, logs
from edge.gateway import asked, metrics, problems
from edge.gateway.problems import Problem
from edge.gateway.takeover import EXTENSION

logger = logs.get(__name__)

_HTTP_CODES = {404: "not_found", 405: "method_not_allowed"}


class Traced:
    """The outermost layer: gives each request its trace id, and takes the take-over aside."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        take = (scope.get("extensions") or {}).pop(EXTENSION, None)
        trace_id = asked.trace_id_in(scope["headers"])
        scope["state"] = {**scope.get("state", {}), "trace_id": trace_id}
        if take is not None:
            # Only here `send` is still the request's own, by which uvicorn knows it.
            scope["state"]["take"] = partial(take, send.__self__)  # type: ignore[attr-defined]

        async def send_traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", trace_id.encode()),
                ]
            await send(message)

        try:
            with logs.tracing(trace_id):
                await self._app(scope, receive, send_traced)
        finally:
            # A reference cycle otherwise, of everything that belonged to the request.
            scope["state"].pop("take", None)


class Raw:
    """An endpoint that Starlette calls as an ASGI application, not with a request."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._app(scope, receive, send)


async def _on_problem(request: Request, problem: Problem) -> Response:
    metrics.REFUSED.labels(problem.code).inc()
    answer = problem.response(asked.trace_id(request))
    if "upgrade" in request.headers:
        # The parser reads nothing after a request that wanted another protocol.
        answer.headers["connection"] = "close"
    return answer


async def _on_edge_error(request: Request, error: errors.EdgeError) -> Response:
    problem = problems.of(error)
    if problem.status >= 500:
        logger.warning("request failed", kind=type(error).__name__, code=error.code)
    return await _on_problem(request, problem)


async def _on_http_exception(request: Request, error: HTTPException) -> Response:
    return await _on_problem(request, Problem(_HTTP_CODES.get(error.status_code, "bad_request")))


async def _on_mistake(request: Request, error: Exception) -> Response:
    # Starlette raises it again once it is answered, so that it is logged with its traceback.
    return await _on_problem(request, Problem("internal"))


async def _on_disconnect(request: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=400)


HANDLERS: Any = {
    Problem: _on_problem,
    errors.EdgeError: _on_edge_error,
    HTTPException: _on_http_exception,
    ClientDisconnect: _on_disconnect,
    Exception: _on_mistake,
}
