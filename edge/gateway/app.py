"""
The gateway's HTTP (stage 80): snapshots, commands, streams, and the page.

    GET  /projects/{p}/tasks                 a page of tasks with the cursor that continues it
    GET  /projects/{p}/tasks/{t}             one task, likewise
    POST /projects/{p}/tasks                 create; Idempotency-Key makes a repeat harmless
    POST /projects/{p}/tasks/{t}/cancel
    POST /projects/{p}/tasks/{t}/retry       a new attempt, with a reason
    POST /projects/{p}/stream-tokens         a token that opens one stream
    GET  /projects/{p}/events                the stream, as Server-Sent Events
    GET  /projects/{p}/ws                    the same, over a WebSocket
    GET  /me                                 who asks, and the projects the session names
    GET  /login?token=                       a one-time link sets the session's cookie
    GET  /, /static/…                        the page

Errors are problem+json (`problems`). Every answer carries the request's trace id, which is taken
from `traceparent` or `x-request-id` where they are sound, and goes into logs and into SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from edge import logs
from edge.buckets import Buckets, Rate
from edge.gateway import asked, pages
from edge.gateway.access import COOKIE, SESSION_S, Access, Identity
from edge.gateway.commands import Commands, outcome
from edge.gateway.envelope import HANDLERS, Raw, Traced
from edge.gateway.event_stream import EventStream
from edge.gateway.hub import Hub
from edge.gateway.hubs import Hubs
from edge.gateway.problems import Problem
from edge.gateway.snapshots import Shared
from edge.gateway.socket_stream import SocketStream
from edge.gateway.store import Applied, Grant, Store
from edge.gateway.stream import Stream
from edge.gateway.streams import Streams
from edge.intake.origin import Network, origin

logger = logs.get(__name__)

DEFAULT_PROVIDER = "replicate"
DEFAULT_MODEL = "wan-video/wan-2.2-t2v-fast"
# How long a newcomer waits for its project's stream to be read.
OPEN_WITHIN_S = 5.0

# Login links that one address may try, and stream tokens that one user may have made.
LOGINS = Rate(per_second=1, burst=30)
TOKENS = Rate(per_second=5, burst=100)

_NO_STORE = {"cache-control": "no-store"}


class Gateway:
    """The routes and what they need."""

    def __init__(
        self,
        store: Store,
        access: Access,
        hubs: Hubs,
        streams: Streams,
        proxies: Sequence[Network] = (),
    ) -> None:
        self._store = store
        self._access = access
        self._hubs = hubs
        self._streams = streams
        self._proxies = proxies
        self._logins = Buckets(LOGINS)
        self._tokens = Buckets(TOKENS)
        self._commands = Commands(store, access)
        self._snapshots: Shared[bytes | None] = Shared()

    def app(self, static: pages.Pages, *, secure_cookie: bool) -> ASGIApp:
        """Return the ASGI application."""
        self._secure_cookie = secure_cookie
        project = "/projects/{project}"
        routes = [
            Route(f"{project}/tasks", self.list_tasks, methods=["GET"]),
            Route(f"{project}/tasks", self.create_task, methods=["POST"]),
            Route(f"{project}/tasks/{{task}}", self.read_task, methods=["GET"]),
            Route(f"{project}/tasks/{{task}}/cancel", self.cancel_task, methods=["POST"]),
            Route(f"{project}/tasks/{{task}}/retry", self.retry_task, methods=["POST"]),
            Route(f"{project}/stream-tokens", self.stream_token, methods=["POST"]),
            Route(f"{project}/events", Raw(self.events), methods=["GET"]),
            Route(f"{project}/ws", Raw(self.socket), methods=["GET"]),
            Route("/me", self.me, methods=["GET"]),
            Route("/login", self.login, methods=["GET"]),
            Route("/", static.index, methods=["GET"]),
            Route("/static/{path:path}", static.file, methods=["GET"]),
        ]
        return Traced(Starlette(routes=routes, exception_handlers=HANDLERS))

    async def close(self) -> None:
        """End what is under way."""
        await self._commands.close()
        await self._access.close()

    # Snapshots

    async def list_tasks(self, request: Request) -> Response:
        """Answer with a page of a project's tasks, newest first."""
        query = request.query_params
        after = asked.uuid_or_none(query.get("after"), "after")
        status = asked.status(query.get("status"))
        limit = asked.limit(query.get("limit"))
        _, grant = await self._enter(request)

        async def question() -> bytes:
            page = await self._store.tasks(grant.tenant, grant.project, after, limit, status)
            return orjson.dumps(page)

        key = (grant.tenant, grant.project, after, limit, status)
        body = await self._snapshots.ask(key, question)
        return Response(body, headers=_NO_STORE, media_type="application/json")

    async def read_task(self, request: Request) -> Response:
        """Answer with one task."""
        _, grant = await self._enter(request)
        task = asked.path_id(request, "task")

        async def question() -> bytes | None:
            found = await self._store.task(grant.tenant, grant.project, task)
            return None if found is None else orjson.dumps(found)

        body = await self._snapshots.ask((grant.tenant, grant.project, task), question)
        if body is None:
            raise Problem("not_found")
        return Response(body, headers=_NO_STORE, media_type="application/json")

    # Commands

    async def create_task(self, request: Request) -> Response:
        """Create a task, or answer with the one that the same key made."""
        _, grant = await self._enter(request, change=True)
        body = await asked.json_body(request)
        given = body.get("input")
        if not isinstance(given, dict):
            raise Problem("bad_input", "input must be an object.")
        provider = asked.text_in(body, "provider", DEFAULT_PROVIDER)
        model = asked.text_in(body, "model", DEFAULT_MODEL)
        applied = await self._store.create_task(
            grant, provider, model, given, asked.idempotency_key(request), asked.trace_id(request)
        )
        return await self._done(grant, applied, created=applied.verdict == "applied")

    async def cancel_task(self, request: Request) -> Response:
        """Ask for a task's cancellation."""
        _, grant = await self._enter(request, change=True)
        task = asked.path_id(request, "task")
        await asked.json_body(request, optional=True)
        applied = await self._store.cancel(grant, task, asked.trace_id(request))
        return await self._done(grant, applied)

    async def retry_task(self, request: Request) -> Response:
        """Start a new attempt of a task that ended."""
        _, grant = await self._enter(request, change=True)
        task = asked.path_id(request, "task")
        body = await asked.json_body(request)
        reason = asked.text_in(body, "reason", "")
        applied = await self._store.retry(
            grant, task, reason, asked.idempotency_key(request), asked.trace_id(request)
        )
        return await self._done(grant, applied)

    async def _done(self, grant: Grant, applied: Applied, *, created: bool = False) -> Response:
        body = await outcome(self._store, grant, applied)
        headers = dict(_NO_STORE)
        if created:
            headers["location"] = f"/projects/{grant.project}/tasks/{applied.task_id}"
        return Response(orjson.dumps(body), 201 if created else 200, headers, "application/json")

    # Streams

    async def stream_token(self, request: Request) -> Response:
        """Make a token that opens one stream of this project."""
        identity, grant = await self._enter(request)
        self._access.require_same_site(request, identity)
        _spend(self._tokens, f"{grant.tenant}/{grant.user}")
        token = await self._access.stream_token(identity, grant)
        return Response(orjson.dumps(token), 201, _NO_STORE, "application/json")

    async def events(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open the stream as Server-Sent Events."""
        request = Request(scope, receive)
        if request.method == "HEAD":
            raise Problem("method_not_allowed")
        project = asked.path_id(request, "project")

        def stream(hub: Hub, grant: Grant, identity: Identity) -> Stream:
            return EventStream(hub, grant, identity.expires_at, self._streams)

        cursor = asked.cursor(request)
        identity = await self._access.identify_stream(request, project)
        await self._open(scope, project, cursor, identity, stream)

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Open the stream over a WebSocket.

        A page cannot see why a handshake was refused. The same request without an upgrade tells:
        it gets the refusal, and 426 where there would be none.
        """
        request = Request(scope, receive)
        if request.method == "HEAD":
            raise Problem("method_not_allowed")
        project = asked.path_id(request, "project")
        if not asked.wants_upgrade(request):
            _, grant = await self._enter(request)
            self._streams.admit(grant)
            self._streams.release(grant)
            raise Problem("upgrade_required")

        def stream(hub: Hub, grant: Grant, identity: Identity) -> Stream:
            may_command = not identity.one_time
            return SocketStream(
                hub, grant, identity.expires_at, self._streams, self._commands, may_command
            )

        cursor = asked.cursor(request)
        identity = await self._access.identify_stream(request, project, talks=True)
        await self._open(scope, project, cursor, identity, stream)

    async def _open(
        self,
        scope: Scope,
        project: UUID,
        cursor: int | None,
        identity: Identity,
        make: Callable[[Hub, Grant, Identity], Stream],
    ) -> None:
        """
        Let a stream begin.

        The head of the answer goes out as soon as the stream is known, before its first event.
        From there the connection is a `Stream`'s, and this request's task ends.
        """
        doubts = self._streams.doubts
        grant = await self._access.permit(identity, project)
        self._streams.admit(grant)
        entered = False
        try:
            hub = await self._hubs.opened(project, cursor, OPEN_WITHIN_S)
            stream = make(hub, grant, identity)
            entered = scope["state"]["take"](stream)
            if entered:
                self._streams.enter(stream)
                hub.join(stream, cursor)
                stream.tell(away=self._streams.away)
                if doubts != self._streams.doubts:
                    # A revocation after the question above was looked into without this stream.
                    self._streams.doubt()
        except Exception:
            if not entered:
                raise
            # The answer has begun, and nobody is left who could turn it into an error.
            logger.exception("stream failed at its start")
            stream.give_up("mistake")
        finally:
            if not entered:
                self._streams.release(grant)

    # People

    async def me(self, request: Request) -> Response:
        """Answer with who asks."""
        identity = await self._access.identify(request)
        body = {
            "user": str(identity.user),
            "tenant": str(identity.tenant),
            "projects": sorted(str(project) for project in identity.projects),
            "expires_at": identity.expires_at,
        }
        return Response(orjson.dumps(body), headers=_NO_STORE, media_type="application/json")

    async def login(self, request: Request) -> Response:
        """Turn a one-time link into a session, and lead to the page."""
        _spend(self._logins, origin(request, self._proxies).source)
        session = await self._access.log_in(request.query_params.get("token", ""))
        if session is None:
            # A used link in a browser that it has logged in already leads to the page all the same.
            identity = await self._access.identify(request)
            projects = [str(project) for project in identity.projects]
            answer = _to_page(projects)
        else:
            token, projects = session
            answer = _to_page(projects)
            answer.set_cookie(
                COOKIE,
                token,
                max_age=SESSION_S,
                httponly=True,
                samesite="lax",
                secure=self._secure_cookie,
            )
        return answer

    async def _enter(self, request: Request, *, change: bool = False) -> tuple[Identity, Grant]:
        identity = await self._access.identify(request)
        project = asked.path_id(request, "project")
        if change:
            self._access.require_same_site(request, identity)
        return identity, await self._access.permit(identity, project, change=change)


def _spend(buckets: Buckets, key: str) -> None:
    wait = buckets.take(key)
    if wait:
        raise Problem("too_many_requests", retry_after=wait)


def _to_page(projects: list[str]) -> Response:
    path = f"/?project={projects[0]}" if projects else "/"
    headers = {**_NO_STORE, "referrer-policy": "no-referrer"}
    return RedirectResponse(path, 303, headers)
