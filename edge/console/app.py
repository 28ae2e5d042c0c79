"""
The operators' page over HTTP.

    GET  /api/me                      who asks, and in which role
    GET  /api/pipeline                what waits where
    GET  /api/alarms, /api/cases, /api/callbacks, /api/parked, /api/letters/{group}
    GET  /api/providers               each as it is now
    GET  /api/report                  how providers behaved today
    GET  /api/actions                 what was done by hand
    GET  /api/tasks?q=                tasks that some words name
    GET  /api/tasks/{task}            why it is where it is, and its whole history
    POST /api/actions/{name}          do something, with a reason (role act)
    GET  /login?token=                a one-time link sets the session's cookie
    GET  /, /static/…, /base/…        the page, and what it shares with the page of jobs

No answer holds a secret, a payload, the URL of an output or what a provider's body said. Errors
are problem+json.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from edge import logs
from edge.buckets import Buckets, Rate
from edge.console import actions, facts as _facts
from edge.console.access import COOKIE, SESSION_S, Access
from edge.console.facts import Facts
from edge.console.problems import HANDLERS
from edge.console.seldom import Seldom
from edge.gateway import asked
from edge.gateway.envelope import Traced
from edge.gateway.pages import Pages
from edge.gateway.problems import Problem
from edge.intake.origin import Network, origin

logger = logs.get(__name__)

STATIC = Path(__file__).parent / "static"
# Login links that one address may try.
LOGINS = Rate(per_second=1, burst=30)
LONGEST_SEARCH = 300

_NUMBER = re.compile(r"[0-9]{1,16}")
_NO_STORE = {"cache-control": "no-store"}


class Console:
    """The routes and what they need."""

    def __init__(
        self, facts: Facts, access: Access, proxies: Sequence[Network] = (), *, secure_cookie: bool
    ) -> None:
        self._facts = facts
        self._access = access
        self._proxies = proxies
        self._secure_cookie = secure_cookie
        self._logins = Buckets(LOGINS)
        self._pipeline = Seldom(self._ask_pipeline, least_s=1, times=5)
        self._providers = Seldom(self._ask_providers, least_s=2, times=5)
        # It reads all attempts of the day, which may be millions.
        self._report = Seldom(self._ask_report, least_s=60, times=30)

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        own, base = Pages(STATIC), Pages()
        routes = [
            Route("/api/me", self.me, methods=["GET"]),
            Route("/api/pipeline", self.pipeline, methods=["GET"]),
            Route("/api/alarms", self.alarms, methods=["GET"]),
            Route("/api/cases", self.cases, methods=["GET"]),
            Route("/api/callbacks", self.dead_callbacks, methods=["GET"]),
            Route("/api/parked", self.parked, methods=["GET"]),
            Route("/api/letters/{group}", self.letters, methods=["GET"]),
            Route("/api/providers", self.providers, methods=["GET"]),
            Route("/api/report", self.report, methods=["GET"]),
            Route("/api/actions", self.done, methods=["GET"]),
            Route("/api/actions/{name}", self.act, methods=["POST"]),
            Route("/api/tasks", self.find, methods=["GET"]),
            Route("/api/tasks/{task}", self.task, methods=["GET"]),
            Route("/login", self.login, methods=["GET"]),
            Route("/", own.index, methods=["GET"]),
            Route("/static/{path:path}", own.file, methods=["GET"]),
            Route("/base/{path:path}", base.file, methods=["GET"]),
        ]
        return Traced(Starlette(routes=routes, exception_handlers=HANDLERS))

    # Looking

    async def me(self, request: Request) -> Response:
        """Answer with who asks."""
        operator = await self._access.reader(request)
        return _json(
            {"who": operator.who, "role": operator.role, "expires_at": operator.expires_at}
        )

    async def pipeline(self, request: Request) -> Response:
        """Answer with what waits where."""
        await self._access.reader(request)
        return _raw(await self._pipeline.ask())

    async def alarms(self, request: Request) -> Response:
        """Answer with the open alarms."""
        await self._access.reader(request)
        return _json({"alarms": await self._facts.alarms()})

    async def cases(self, request: Request) -> Response:
        """Answer with the open cases."""
        await self._access.reader(request)
        kind = asked.status(request.query_params.get("kind"))
        return _json({"cases": await self._facts.cases(kind)})

    async def dead_callbacks(self, request: Request) -> Response:
        """Answer with callbacks that ended dead."""
        await self._access.reader(request)
        before = request.query_params.get("before")
        if before is not None and not _NUMBER.fullmatch(before):
            raise Problem("bad_request", "before is not a callback's id.")
        found = await self._facts.dead_callbacks(None if before is None else int(before))
        return _json({"callbacks": found})

    async def parked(self, request: Request) -> Response:
        """Answer with messages that could not be sent."""
        await self._access.reader(request)
        return _json({"parked": await self._facts.parked()})

    async def letters(self, request: Request) -> Response:
        """Answer with the dead letters of a consumer group."""
        await self._access.reader(request)
        group = request.path_params["group"]
        if group not in await self._facts.bus():
            raise Problem("not_found")
        return _json({"letters": await self._facts.letters(group)})

    async def providers(self, request: Request) -> Response:
        """Answer with every provider as it is now."""
        await self._access.reader(request)
        return _raw(await self._providers.ask())

    async def report(self, request: Request) -> Response:
        """Answer with how providers behaved since midnight UTC."""
        await self._access.reader(request)
        return _raw(await self._report.ask())

    async def done(self, request: Request) -> Response:
        """Answer with what was done by hand."""
        await self._access.reader(request)
        return _json({"actions": await self._facts.actions()})

    async def find(self, request: Request) -> Response:
        """Answer with the tasks that some words name."""
        await self._access.reader(request)
        words = request.query_params.get("q", "").strip()
        if not words or len(words) > LONGEST_SEARCH or "\0" in words:
            raise Problem("bad_request", f"q is 1 to {LONGEST_SEARCH} characters.")
        return _json({"tasks": await self._facts.find(words)})

    async def task(self, request: Request) -> Response:
        """Answer with why a task is where it is, and with its history."""
        await self._access.reader(request)
        task = asked.path_id(request, "task")
        why = await self._facts.why(task)
        if why is None:
            raise Problem("not_found")
        return _json({"id": task, "why": why, "history": await self._facts.history(task)})

    async def _ask_pipeline(self) -> bytes:
        return _encoded(await self._facts.pipeline())

    async def _ask_providers(self) -> bytes:
        return _encoded({"providers": await self._facts.providers()})

    async def _ask_report(self) -> bytes:
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        tomorrow = today + timedelta(days=1)
        return _encoded({"today": await self._facts.convergence(today, tomorrow)})

    # Acting

    async def act(self, request: Request) -> Response:
        """Do something by hand."""
        operator = await self._access.actor(request)
        name = request.path_params["name"]
        action = actions.ACTIONS.get(name)
        if action is None:
            raise Problem("not_found")
        body = await asked.json_body(request)
        reason = actions.reason(action, body)
        given = actions.arguments(action, body)
        result = await action.do(self._facts, given, operator.who, reason)
        logger.info("action done", action=name)
        return _json({"action": name, "who": operator.who, "reason": reason, "result": result})

    async def login(self, request: Request) -> Response:
        """Turn a one-time link into a session, and lead to the page."""
        wait = self._logins.take(origin(request, self._proxies).source)
        if wait:
            raise Problem("too_many_requests", retry_after=wait)
        session = await self._access.log_in(request.query_params.get("token", ""))
        headers = {**_NO_STORE, "referrer-policy": "no-referrer"}
        # A used link leads to the page all the same: it says what is missing, if anything is.
        answer = RedirectResponse("/", 303, headers)
        if session is not None:
            answer.set_cookie(
                COOKIE,
                session,
                max_age=SESSION_S,
                httponly=True,
                samesite="lax",
                secure=self._secure_cookie,
            )
        return answer


def _json(value: object) -> Response:
    return _raw(_encoded(value))


def _raw(body: bytes) -> Response:
    return Response(body, headers=_NO_STORE, media_type="application/json")


def _encoded(value: object) -> bytes:
    return orjson.dumps(value, default=_facts.plain)
