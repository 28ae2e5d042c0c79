"""Tasks as an application makes them, and the rows that tell what became of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import orjson
import psycopg


@dataclass
class Jobs:
    """The control plane's tables as their owner sees them, and the calls that fill them."""

    session: psycopg.Connection[Any]
    tenant: uuid.UUID = field(default_factory=uuid.uuid4)
    project: uuid.UUID = field(default_factory=uuid.uuid4)

    def provider_at(self, url: str, **override: Any) -> None:
        """Point the shipped profile of Replicate at a server of the test's own."""
        profile = {"base_url": url, "local": True, **override}
        self.session.execute(
            "select aivedio.override_provider('replicate', %s, 'a test', 'a server of its own')",
            [orjson.dumps(profile).decode()],
        )

    def create(self, count: int = 1) -> list[uuid.UUID]:
        create = (
            "select task_id from aivedio.create_task("
            "%s, %s, gen_random_uuid(), 'replicate', 'm', '{\"prompt\": \"x\"}')"
        )
        tasks: list[uuid.UUID] = []
        for _ in range(count):
            row = self.session.execute(create, [self.tenant, self.project]).fetchone()
            assert row is not None
            tasks.append(row[0])
        return tasks

    def submitted(self, count: int = 1) -> list[uuid.UUID]:
        """Create tasks whose submission the provider has accepted and whose poll is due now."""
        tasks = self.create(count)
        claimed = self.session.execute(
            "select attempt_id, lease_token from aivedio.claim_submits('t', 1000, 'http://x')"
        ).fetchall()
        for attempt, token in claimed:
            body = {"id": f"job-{attempt}", "status": "starting"}
            outcome = {"kind": "response", "http_status": 201, "body": body}
            self.session.execute(
                "select aivedio.settle_submit(%s, %s, %s)",
                [attempt, token, orjson.dumps(outcome).decode()],
            )
        self.session.execute("update aivedio.task_attempts set next_poll_at = now()")
        return tasks

    def poll_now(self) -> None:
        self.session.execute(
            "update aivedio.task_attempts set next_poll_at = now() where next_poll_at is not null"
        )
        self.session.execute("select pg_notify('aivedio_poll', '0')")

    def statuses(self) -> list[str]:
        rows = self.session.execute("select status from aivedio.generation_tasks order by id")
        return [status for (status,) in rows.fetchall()]

    def attempts(self, columns: str) -> list[tuple[Any, ...]]:
        return self.session.execute(
            f"select {columns} from aivedio.task_attempts order by task_id, attempt_no"
        ).fetchall()

    def cases(self) -> list[str]:
        rows = self.session.execute("select kind from aivedio.reconciliation_cases order by kind")
        return [kind for (kind,) in rows.fetchall()]
