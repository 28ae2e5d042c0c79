"""
Which outbox shards this relay sends: those whose advisory locks its session holds.

One direct session owns the shards, reads them and marks them. So whoever lost the session can
mark nothing, and a relay that is dead, or silent for longer than the session may be idle, has
lost its shards to the next one. Every relay may own its fair share, the shards divided by the
relays alive: what is left over is taken, what is too much is given up once nothing of it is in
flight.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import Gauge
from psycopg.conninfo import make_conninfo

from edge import errors, logs
from edge.listener import Listener
from relay.bus import Message

logger = logs.get(__name__)

SHARDS: Final = 8
IDLE_LIMIT: Final = 5.0
HEARTBEAT: Final = 1.0
# After so long without an answer the session may be gone: nothing may be sent any more.
FRESH_FOR: Final = 3.5

OWNED = Gauge("aivedio_relay_shards_owned", "Outbox shards that this relay sends.")


@dataclass(frozen=True, slots=True)
class Row:
    """One outbox row that is owed to the bus."""

    id: int
    shard: int
    tries: int
    message: Message


class Owner:
    """
    The session that owns shards.

    Every method raises `errors.DatabaseDown` when the session is of no use; what it owned is
    then lost, and `open` begins anew. After any other `errors.Unavailable` the same call may
    succeed later.
    """

    def __init__(self, conninfo: str) -> None:
        self._session = Listener(
            make_conninfo(conninfo, application_name="aivedio-relay-owner"),
            role="aivedio_relay",
            channels=(),
            answer_within=FRESH_FOR,
            settings={
                "idle_session_timeout": f"{round(IDLE_LIMIT * 1000)}",
                # Shorter than our own patience: a busy row costs a statement, not the session.
                "lock_timeout": "2000",
                "statement_timeout": "3000",
            },
        )
        self._turn = asyncio.Lock()
        self._answered_at = 0.0
        self._owned: set[int] = set()
        self._leaving: set[int] = set()

    @property
    def shards(self) -> list[int]:
        """The shards that may be sent now."""
        return sorted(self._owned - self._leaving)

    def require_fresh(self) -> None:
        """Raise `errors.DatabaseDown` when the session may have been ended for its silence."""
        silent = asyncio.get_running_loop().time() - self._answered_at
        if silent > FRESH_FOR:
            raise errors.DatabaseDown("the owning session was silent for too long")

    async def open(self) -> None:
        """Connect; nothing is owned yet."""
        self._forget()
        await self._session.open()
        self._answered_at = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Leave; the server then gives the shards to others."""
        self._forget()
        await self._session.close()

    async def balance(self, in_flight: Collection[int]) -> bool:
        """
        Take shards up to the fair share, give up those beyond it; return whether `shards` changed.

        A shard with rows in flight is only given up in a later call, and no longer sent meanwhile.
        It is also the session's heartbeat.
        """
        before = self.shards
        ((share,),) = await self._call("fair_share")
        excess = len(self._owned) - share
        self._leaving = set(sorted(self._owned)[-excess:]) if excess > 0 else set()
        for shard in self._leaving.difference(in_flight):
            await self._call("release_shard", p_shard=shard)
            self._owned.discard(shard)
            self._leaving.discard(shard)
        missing = [shard for shard in range(SHARDS) if shard not in self._owned]
        random.shuffle(missing)
        for shard in missing:
            if len(self._owned) >= share:
                break
            ((owned,),) = await self._call("own_shard", p_shard=shard)
            if owned:
                self._owned.add(shard)
        OWNED.set(len(self._owned))
        if self.shards != before:
            logger.info("shards changed", shards=self.shards, share=share)
        return self.shards != before

    async def read(self, shards: Sequence[int], limit: int) -> list[Row]:
        """Return up to `limit` rows that the shards owe, shard by shard, oldest first."""
        found = await self._call("read_shards", p_shards=list(shards), p_limit=limit)
        # Meanwhile a shard may have been given up.
        kept = self._owned - self._leaving
        return [
            Row(id_, shard, tries, Message(task_id, tag, body))
            for shard, id_, task_id, tag, body, tries in found
            if shard in kept
        ]

    async def mark_published(self, rows: Collection[Row]) -> None:
        """Record that the bus has acknowledged these rows."""
        shards = sorted({row.shard for row in rows})
        ids = sorted(row.id for row in rows)
        await self._call("mark_shards", p_shards=shards, p_ids=ids)

    async def mark_unsent(self, row: Row, error: str) -> bool:
        """Count a refusal of the row by the bus; return whether it is parked now."""
        ((parked,),) = await self._call(
            "mark_unsent", p_shard=row.shard, p_ids=[row.id], p_error=error
        )
        return bool(parked)

    async def _call(self, function: str, **arguments: object) -> list[tuple[Any, ...]]:
        async with self._turn:
            answer = await self._session.rows(function, **arguments)
            self._answered_at = asyncio.get_running_loop().time()
            return answer

    def _forget(self) -> None:
        self._owned.clear()
        self._leaving.clear()
        OWNED.set(0)
