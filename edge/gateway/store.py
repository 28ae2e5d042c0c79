"""Every question that the gateway asks PostgreSQL, and the shapes of the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from edge import database
from edge.gateway import frames
from edge.gateway.hub import Page, Read

READERS = 8
WRITERS = 4


class Grant(NamedTuple):
    """
    By what right somebody follows or uses a project.

    `claimed`: the session's own claims name the project, so that membership need not.
    """

    tenant: UUID
    project: UUID
    user: UUID
    session: str
    issued_at: int
    claimed: bool


@dataclass(frozen=True, slots=True)
class Redeemed:
    """Mirror of the SQL type aivedio.redeemed_token."""

    tenant_id: UUID
    project_id: UUID | None
    user_id: UUID
    session_id: str
    claims: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamHead:
    """Mirror of the SQL type aivedio.stream_head."""

    project_id: UUID
    last_event_id: int


@dataclass(frozen=True, slots=True)
class Applied:
    """Mirror of the SQL type aivedio.applied, as far as a browser is told."""

    verdict: str
    task_id: UUID


@dataclass(frozen=True, slots=True)
class _EventPage:
    complete: bool
    reason: str | None
    last_event_id: int
    more: bool
    events: list[frames.StoredEvent]


class Store:
    """
    Calls the stored functions: reads as aivedio_gateway, commands as aivedio_app.

    Every method raises `errors.EdgeError` as `edge.database` does.
    """

    def __init__(self, reader: database.Database, writer: database.Database) -> None:
        self._reader = reader
        self._writer = writer

    async def database_id(self) -> UUID:
        """Return the identity that the Redis channels are named by."""
        identity: UUID = await self._reader.value("database_id")
        return identity

    # Streams

    async def read(self, read: Read) -> Page:
        """Make the read that a hub asked for."""
        project = read.hub.project
        if read.kind == "back":
            page = await self._reader.one(
                _EventPage,
                "read_events_before",
                p_project=project,
                p_before=read.cursor,
                p_limit=read.limit,
            )
        else:
            page = await self._reader.one(
                _EventPage,
                "read_events_after",
                p_project=project,
                p_cursor=read.cursor,
                p_limit=read.limit,
            )
        events = [frames.frame(stored) for stored in page.events]
        return Page(page.complete, page.reason, page.last_event_id, page.more, events)

    async def moved(self, since: int) -> list[StreamHead]:
        """Return the heads of all projects that have events past `since`."""
        return await self._reader.rows(StreamHead, "streams_moved", p_since=since)

    async def heads(self, projects: Sequence[UUID]) -> list[StreamHead]:
        """Return the heads of these projects; one without a stream is left out."""
        return await self._reader.rows(StreamHead, "stream_heads", p_projects=list(projects))

    async def watch(self, projects: Sequence[UUID]) -> None:
        """Tell the pollers that somebody looks at these projects."""
        await self._reader.value("watch_projects", p_projects=list(projects))

    # Snapshots

    async def task(self, tenant: UUID, project: UUID, task: UUID) -> dict[str, Any] | None:
        """Return {task, last_event_id}, or None."""
        found: dict[str, Any] | None = await self._reader.value(
            "read_snapshot", p_tenant=tenant, p_project=project, p_task=task
        )
        return found

    async def tasks(
        self, tenant: UUID, project: UUID, after: UUID | None, limit: int, status: str | None
    ) -> dict[str, Any]:
        """Return {tasks, last_event_id, next}."""
        found: dict[str, Any] = await self._reader.value(
            "list_snapshot",
            p_tenant=tenant,
            p_project=project,
            p_after=after,
            p_limit=limit,
            p_status=status,
        )
        return found

    # Commands

    async def create_task(
        self,
        grant: Grant,
        provider: str,
        model: str,
        given: dict[str, Any],
        key: str | None,
        trace_id: str,
    ) -> Applied:
        """Create a task, or find the one that the same key made."""
        return await self._writer.one(
            Applied,
            "create_task",
            p_tenant=grant.tenant,
            p_project=grant.project,
            p_user=grant.user,
            p_provider=provider,
            p_model=model,
            p_input=given,
            p_idempotency_key=key,
            p_trace_id=trace_id,
        )

    async def cancel(self, grant: Grant, task: UUID, trace_id: str) -> Applied:
        """Ask for a task's cancellation."""
        return await self._writer.one(
            Applied,
            "request_cancel",
            p_tenant=grant.tenant,
            p_project=grant.project,
            p_task=task,
            p_user=grant.user,
            p_trace_id=trace_id,
        )

    async def retry(
        self, grant: Grant, task: UUID, reason: str, key: str | None, trace_id: str
    ) -> Applied:
        """Start a new attempt of a task that ended."""
        return await self._writer.one(
            Applied,
            "start_attempt",
            p_tenant=grant.tenant,
            p_project=grant.project,
            p_task=task,
            p_who=f"user {grant.user}",
            p_reason=reason,
            p_key=key,
            p_trace_id=trace_id,
        )

    # Access

    async def role(self, grant: Grant) -> str | None:
        """Return in which role the project may be used; None is no, for whatever reason."""
        role: str | None = await self._reader.value(
            "may_access",
            p_tenant=grant.tenant,
            p_project=grant.project,
            p_user=grant.user,
            p_session=grant.session,
            p_issued_at=_moment(grant.issued_at),
            p_claimed=grant.claimed,
        )
        return role

    async def lost(self, grants: Sequence[Grant]) -> set[Grant]:
        """Return those of the grants that no longer hold, by one question for all."""
        places = await self._reader.values(
            "lost_access",
            p_tenants=[grant.tenant for grant in grants],
            p_projects=[grant.project for grant in grants],
            p_users=[grant.user for grant in grants],
            p_sessions=[grant.session for grant in grants],
            p_issued_at=[_moment(grant.issued_at) for grant in grants],
            p_claimed=[grant.claimed for grant in grants],
        )
        return {grants[place - 1] for place in places}

    async def issue_stream_token(
        self, grant: Grant, token_hash: bytes, claims: dict[str, Any]
    ) -> datetime:
        """Store a token that opens one stream; return until when."""
        until: datetime = await self._reader.value(
            "issue_token",
            p_purpose="stream",
            p_token_hash=token_hash,
            p_tenant=grant.tenant,
            p_project=grant.project,
            p_user=grant.user,
            p_session=grant.session,
            p_claims=claims,
        )
        return until

    async def redeem(self, purpose: str, token_hash: bytes) -> Redeemed | None:
        """Use a one-time token up; None when it is no good."""
        return await self._reader.maybe(
            Redeemed, "redeem_token", p_purpose=purpose, p_token_hash=token_hash
        )


@asynccontextmanager
async def connect(conninfo: str) -> AsyncIterator[Store]:
    """Open the gateway's two pools; neither needs to reach the database yet."""
    async with (
        database.connect(
            conninfo,
            role="aivedio_gateway",
            max_size=READERS,
            statement_timeout=3.0,
            composites={"stored_event": frames.StoredEvent},
        ) as reader,
        database.connect(conninfo, role="aivedio_app", max_size=WRITERS) as writer,
    ):
        yield Store(reader, writer)


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
