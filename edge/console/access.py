"""
Who may look at the operators' page, and who may act.

A session token is checked with the same keys as the gateway's and says more: `operator` is "read"
or "act". It comes as a bearer or as the cookie aivedio_operator (HttpOnly, SameSite=Lax). A change
by cookie must show that a page of ours asked for it. `sub` is who is written into the audit.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import jwt
from starlette.requests import Request

from edge.console.facts import Facts
from edge.gateway.keys import Keys
from edge.gateway.problems import Problem
from edge.gateway.same_site import SameSite

COOKIE = "aivedio_operator"
SESSION_S = 8 * 3600
ROLES = ("read", "act")
_LONGEST_TOKEN = 8192
_LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class Operator:
    """Whose request it is; `role` is read or act."""

    who: str
    role: str
    tenant: str
    session: str
    issued_at: int
    expires_at: int
    by_cookie: bool


class Access:
    """Finds out which operator asks."""

    def __init__(self, keys: Keys, facts: Facts, public_url: str) -> None:
        self._keys = keys
        self._facts = facts
        self._site = SameSite(public_url)

    async def reader(self, request: Request) -> Operator:
        """Return who looks. Raises `Problem` unauthenticated, or forbidden for no operator."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        by_cookie = not kind
        if by_cookie:
            token = request.cookies.get(COOKIE, "")
        elif kind.lower() != "bearer":
            raise Problem("unauthenticated")
        return await self._operator(token.strip(), by_cookie)

    async def actor(self, request: Request) -> Operator:
        """Return who acts. Raises `Problem` also for another site's page and for who may not."""
        operator = await self.reader(request)
        if operator.by_cookie:
            self._site.require(request)
        if operator.role != "act":
            raise Problem("forbidden", "Your session may look, not act.")
        return operator

    async def log_in(self, token: str) -> str | None:
        """Redeem a one-time link: return a session token, or None."""
        if not 16 <= len(token) <= 256 or not token.isascii() or not self._keys.can_sign:
            return None
        redeemed = await self._facts.redeem(hashlib.sha256(token.encode()).digest())
        if redeemed is None or redeemed.claims.get("operator") not in ROLES:
            return None
        now = int(time.time())
        return self._keys.sign(
            {
                "sub": redeemed.claims.get("sub") or str(redeemed.user_id),
                "operator": redeemed.claims["operator"],
                "tenant": str(redeemed.tenant_id),
                "sid": redeemed.session_id,
                "iat": now,
                "exp": now + SESSION_S,
            }
        )

    async def _operator(self, token: str, by_cookie: bool) -> Operator:
        if not 0 < len(token) <= _LONGEST_TOKEN:
            raise Problem("unauthenticated")
        try:
            claims = await self._keys.claims(token)
            operator = Operator(
                who=_name(claims["sub"]),
                role=str(claims.get("operator")),
                tenant=str(claims["tenant"]),
                session=str(claims["sid"]),
                issued_at=int(claims["iat"]),
                expires_at=int(claims["exp"]),
                by_cookie=by_cookie,
            )
        except (jwt.InvalidTokenError, ValueError, TypeError, AttributeError):
            raise Problem("unauthenticated") from None
        if operator.role not in ROLES:
            raise Problem("forbidden", "This session is not an operator's.")
        issued_at = datetime.fromtimestamp(operator.issued_at, UTC)
        if await self._facts.revoked(operator.tenant, operator.who, operator.session, issued_at):
            raise Problem("unauthenticated")
        return operator


def _name(subject: object) -> str:
    """Return a subject that an audit can hold. Raises ValueError."""
    if not isinstance(subject, str) or not subject.strip() or len(subject) > _LONGEST_NAME:
        raise ValueError("no subject")
    if not subject.isprintable():
        raise ValueError("a subject that cannot be read")
    return subject
