"""Every question that the operators' page asks PostgreSQL, and the shapes of the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from edge import database

SESSIONS = 4


@dataclass(frozen=True, slots=True)
class Redeemed:
    """Mirror of the SQL type aivedio.redeemed_token."""

    tenant_id: UUID
    user_id: UUID
    session_id: str
    claims: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Applied:
    """Mirror of the SQL type aivedio.applied."""

    verdict: str
    task_id: UUID | None
    attempt_id: UUID | None
    task_version: int | None
    status: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """Mirror of the SQL type aivedio.found_task."""

    task_id: UUID
    found_as: str
    status: str
    provider: str
    model: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """Mirror of the SQL type aivedio.history_entry."""

    at: datetime
    kind: str
    attempt_no: int | None
    what: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Mirror of the SQL type aivedio.listed_case."""

    id: UUID
    kind: str
    subject: str
    provider: str | None
    task_id: UUID | None
    attempt_id: UUID | None
    opened_at: datetime
    last_at: datetime
    evidence: list[dict[str, Any]]
    resolutions: list[str]


@dataclass(frozen=True, slots=True)
class DeadCallback:
    """Mirror of the SQL type aivedio.dead_callback."""

    id: int
    provider: str
    received_at: datetime
    processed_at: datetime | None
    error: str | None
    tries: int
    signed: bool
    provider_task_id: str | None
    client_request_id: str | None
    attempt_id: UUID | None
    task_id: UUID | None
    replayable: bool


@dataclass(frozen=True, slots=True)
class Alarm:
    """Mirror of the SQL type aivedio.listed_alarm."""

    kind: str
    subject: str
    count: int
    first_at: datetime
    last_at: datetime
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parked:
    """Mirror of the SQL type aivedio.parked_message."""

    id: int
    task_id: UUID
    version: int
    status: str | None
    tries: int
    error: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Provider:
    """Mirror of the SQL type aivedio.provider_summary."""

    name: str
    revision: int
    webhook: bool
    poll: bool
    overridden: bool
    scheduled: int
    due: int
    coverage: float | None
    ends: int | None
    delay_p50_s: float | None
    delay_p95_s: float | None
    measured_at: datetime | None
    circuits: list[dict[str, Any]]
    quotas: list[dict[str, Any]]
    last_end_at: datetime | None


@dataclass(frozen=True, slots=True)
class Convergence:
    """Mirror of the SQL type aivedio.convergence."""

    day: date
    provider: str
    model: str
    attempts: int
    ended: int
    callback_first: int
    poll_first: int
    callback_lead: timedelta | None
    callback_coverage: Decimal | None
    lag_p50: timedelta | None
    lag_p95: timedelta | None
    duration_p50: timedelta | None
    duration_p95: timedelta | None
    out_of_order: int
    conflicts: int
    stale_attempts: int
    unknown_words: int
    polls: int
    polls_unchanged: Decimal | None
    polls_throttled: Decimal | None
    callbacks_repeated: int


@dataclass(frozen=True, slots=True)
class Done:
    """Mirror of the SQL type aivedio.listed_action."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    reason: str


class Facts:
    """Asks as aivedio_operator."""

    def __init__(self, db: database.Database) -> None:
        self.db = db

    async def redeem(self, token_hash: bytes) -> Redeemed | None:
        """Use a one-time link up; None when it is no good."""
        return await self.db.maybe(
            Redeemed, "redeem_token", p_purpose="login", p_token_hash=token_hash
        )

    async def revoked(self, tenant: str, user: str, session: str, issued_at: datetime) -> bool:
        """Tell whether a session was ended since it was issued."""
        answer: bool = await self.db.value(
            "is_revoked", p_tenant=tenant, p_user=user, p_session=session, p_issued_at=issued_at
        )
        return answer

    async def pipeline(self) -> dict[str, Any]:
        """Return what waits where. Alarms have a list of their own."""
        status: dict[str, Any] = await self.db.value("pipeline_status")
        status["alarms"] = len(status["alarms"])
        return status

    async def bus(self) -> dict[str, Any]:
        """Return the consumer groups of the embedded bus; none where another is used."""
        groups: dict[str, Any] = await self.db.value("bus_status")
        return groups

    async def alarms(self) -> list[Alarm]:
        """Return the open alarms."""
        return await self.db.rows(Alarm, "list_alarms")

    async def cases(self, kind: str | None) -> list[Case]:
        """Return the open cases, of one kind or all."""
        return await self.db.rows(Case, "list_cases", p_kind=kind)

    async def dead_callbacks(self, before: int | None) -> list[DeadCallback]:
        """Return callbacks that ended dead, below an id."""
        return await self.db.rows(DeadCallback, "list_dead_callbacks", p_before=before)

    async def parked(self) -> list[Parked]:
        """Return messages that could not be sent."""
        return await self.db.rows(Parked, "list_parked")

    async def letters(self, group: str) -> list[dict[str, Any]]:
        """Return the dead letters of a consumer group that there is."""
        letters: list[dict[str, Any]] = await self.db.value("dead_letters", p_group=group)
        return letters

    async def providers(self) -> list[Provider]:
        """Return every provider as it is now."""
        return await self.db.rows(Provider, "provider_overview")

    async def convergence(self, since: datetime, until: datetime) -> list[Convergence]:
        """Return how providers behaved."""
        return await self.db.rows(Convergence, "convergence_report", p_from=since, p_to=until)

    async def actions(self) -> list[Done]:
        """Return what was done by hand."""
        return await self.db.rows(Done, "list_actions")

    async def find(self, words: str) -> list[Found]:
        """Return the tasks that the words name."""
        return await self.db.rows(Found, "find_task", p_text=words)

    async def why(self, task: UUID) -> dict[str, Any] | None:
        """Return why a task is where it is; None for one that there is not."""
        answer: dict[str, Any] | None = await self.db.value("why_waiting", p_task=task)
        return answer

    async def history(self, task: UUID) -> list[Entry]:
        """Return all that is recorded of a task."""
        return await self.db.rows(Entry, "task_history", p_task=task)


@asynccontextmanager
async def connect(conninfo: str) -> AsyncIterator[Facts]:
    """Open the pool; it need not reach the database yet."""
    async with database.connect(conninfo, role="aivedio_operator", max_size=SESSIONS) as db:
        yield Facts(db)


def plain(value: object) -> object:
    """Return what JSON has of a value that orjson does not know."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError
