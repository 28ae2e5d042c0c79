"""
Who may follow and use what.

A request is somebody's by one of three credentials, looked for in this order:

    authorization: Bearer …    a session token (JWT)
    authorization: Stream …    a one-time token, which opens one stream; also as ?token=
    cookie aivedio_session     the same session token, HttpOnly and SameSite=Lax

A cookie is sent by the browser whoever made the page, so a request by cookie that changes
something must show by Origin or Sec-Fetch-Site that it is from here, and one that opens a stream
must not show the contrary.

A session token's claims are sub (user), tenant, projects (optional), sid (session), iat and exp.
Whether it may use a project is PostgreSQL's answer (`may_access`), which knows members and
revocations; the claims only say that membership is not needed.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import jwt
from starlette.requests import Request

from edge.gateway.keys import Keys
from edge.gateway.problems import Problem
from edge.gateway.same_site import SameSite
from edge.gateway.store import Grant, Redeemed, Store
from edge.gateway.together import Together

COOKIE = "aivedio_session"
SESSION_S = 12 * 3600
# The longest life of a one-time token, and how long a stream lasts that names no end.
TOKEN_S = 60
STREAM_S = 3600
_LONGEST_TOKEN = 8192
_MAY_CHANGE = frozenset({"member", "operator"})


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose request it is. `one_time`: by a token that opens one stream and nothing else."""

    user: UUID
    tenant: UUID
    session: str
    issued_at: int
    expires_at: int
    projects: frozenset[UUID]
    by_cookie: bool = False
    one_time: bool = False

    def grant(self, project: UUID) -> Grant:
        """Return the right to a project that this identity claims, or hopes, to have."""
        return Grant(
            tenant=self.tenant,
            project=project,
            user=self.user,
            session=self.session,
            issued_at=self.issued_at,
            claimed=project in self.projects,
        )


class Access:
    """Finds out who asks, and asks PostgreSQL what they may."""

    def __init__(self, keys: Keys, store: Store, public_url: str) -> None:
        self._keys = keys
        self._store = store
        self._newcomers: Together[Grant, bool] = Together(self._hold)
        self._site = SameSite(public_url)

    async def identify(self, request: Request) -> Identity:
        """Return whose request this is. Raises `Problem` unauthenticated."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return await self._session(token.strip(), by_cookie=False)
        cookie = request.cookies.get(COOKIE)
        if kind or not cookie:
            raise Problem("unauthenticated")
        return await self._session(cookie, by_cookie=True)

    async def identify_stream(
        self, request: Request, project: UUID, *, talks: bool = False
    ) -> Identity:
        """
        Return who opens a stream: besides sessions, one-time tokens count.

        `talks`: a WebSocket, which browsers open to anywhere and which takes commands.
        """
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "stream":
            if kind or "token" not in request.query_params:
                identity = await self.identify(request)
                if talks:
                    self.require_same_site(request, identity)
                else:
                    self._require_not_foreign(request, identity)
                return identity
            token = request.query_params["token"]
        redeemed = await self._redeem("stream", token.strip())
        if redeemed is None or redeemed.project_id != project:
            raise Problem("unauthenticated")
        # A token that an application made by SQL names its project by its own authority, and is
        # no older than a token can be.
        claims = {"claimed": True, **redeemed.claims}
        now = int(time.time())
        return Identity(
            user=redeemed.user_id,
            tenant=redeemed.tenant_id,
            session=redeemed.session_id,
            issued_at=int(claims.get("iat", now - TOKEN_S)),
            expires_at=int(claims.get("exp", now + STREAM_S)),
            projects=frozenset({project} if claims["claimed"] else ()),
            one_time=True,
        )

    async def permit(self, identity: Identity, project: UUID, *, change: bool = False) -> Grant:
        """
        Return the grant by which this identity uses a project.

        Raises `Problem`: not_found for a project that is missing or not theirs, which look the
        same; forbidden where they may read but not change.
        """
        grant = identity.grant(project)
        await self.require(grant, change=change)
        return grant

    async def require(self, grant: Grant, *, change: bool = False) -> None:
        """Raise what `permit` raises unless the grant holds now."""
        if not change:
            if not await self._newcomers.ask(grant):
                raise Problem("not_found")
            return
        role = await self._store.role(grant)
        if role is None:
            raise Problem("not_found")
        if role not in _MAY_CHANGE:
            raise Problem("forbidden")

    async def _hold(self, grants: Sequence[Grant]) -> dict[Grant, bool]:
        lost = await self._store.lost(grants)
        return {grant: grant not in lost for grant in grants}

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._newcomers.close()

    def require_same_site(self, request: Request, identity: Identity) -> None:
        """Refuse a change by cookie that cannot show that a page of ours asked for it."""
        if identity.by_cookie:
            self._site.require(request)

    async def stream_token(self, identity: Identity, grant: Grant) -> dict[str, Any]:
        """Make a one-time token that opens a stream of this project."""
        token = secrets.token_urlsafe(32)
        claims = {"iat": identity.issued_at, "exp": identity.expires_at, "claimed": grant.claimed}
        until = await self._store.issue_stream_token(grant, _digest(token), claims)
        return {"token": token, "expires_at": until.isoformat().replace("+00:00", "Z")}

    async def log_in(self, token: str) -> tuple[str, list[str]] | None:
        """Redeem a login token: return a session token and the projects it names, or None."""
        redeemed = await self._redeem("login", token)
        if redeemed is None or not self._keys.can_sign:
            return None
        projects = redeemed.claims.get("projects") or []
        if redeemed.project_id is not None and str(redeemed.project_id) not in projects:
            projects = [str(redeemed.project_id), *projects]
        now = int(time.time())
        session = self._keys.sign(
            {
                "sub": str(redeemed.user_id),
                "tenant": str(redeemed.tenant_id),
                "projects": projects,
                "sid": redeemed.session_id,
                "iat": now,
                "exp": now + SESSION_S,
            }
        )
        return session, projects

    async def _redeem(self, purpose: str, token: str) -> Redeemed | None:
        if not 16 <= len(token) <= 256 or not token.isascii():
            return None
        return await self._store.redeem(purpose, _digest(token))

    async def _session(self, token: str, *, by_cookie: bool) -> Identity:
        if len(token) > _LONGEST_TOKEN:
            raise Problem("unauthenticated")
        try:
            claims = await self._keys.claims(token)
            return Identity(
                user=UUID(claims["sub"]),
                tenant=UUID(claims["tenant"]),
                session=str(claims["sid"]),
                issued_at=int(claims["iat"]),
                expires_at=int(claims["exp"]),
                projects=frozenset(UUID(project) for project in claims.get("projects") or ()),
                by_cookie=by_cookie,
            )
        except (jwt.InvalidTokenError, ValueError, TypeError, AttributeError):
            raise Problem("unauthenticated") from None

    def _require_not_foreign(self, request: Request, identity: Identity) -> None:
        """Refuse a stream by cookie that another site's page asks for."""
        if not identity.by_cookie:
            return
        origin = request.headers.get("origin")
        if origin is not None and not self._site.ours(origin, request):
            raise Problem("foreign_origin")
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise Problem("foreign_origin")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
