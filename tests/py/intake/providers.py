"""Providers of a test's own: a profile with any webhook section, and attempts that wait for it."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import orjson
import psycopg

PROFILE: dict[str, Any] = {
    "base_url": "https://api.lumen.example",
    "auth": {"kind": "none"},
    "submit": {
        "method": "POST",
        "path": "/jobs",
        "body": {"cb": "{callback_url}"},
        "accepted": [200],
        "provider_task_id": "$.id",
    },
    "poll": {"method": "GET", "path": "/jobs/{provider_task_id}"},
    "fields": {"provider_task_id": "$.id", "status": "$.state"},
    "words": {"webhook": {"run": "running"}, "poll": {"run": "running"}},
}


def define(session: psycopg.Connection[Any], webhook: dict[str, Any], name: str = "lumen") -> None:
    """Define a provider, or change how it calls back."""
    profile = {**PROFILE, "local": True, "webhook": webhook}
    session.execute(
        "select aivedio.define_provider(%s, %s)", [name, orjson.dumps(profile).decode()]
    )


def attempt(
    session: psycopg.Connection[Any], token: str, name: str = "lumen", job: str = "job-1"
) -> uuid.UUID:
    """Make a running attempt whose callbacks carry `token` and whose poll is an hour away."""
    row = session.execute(
        "select attempt_id from aivedio.create_task(gen_random_uuid(), gen_random_uuid(),"
        " gen_random_uuid(), %s, 'm', '{}')",
        [name],
    ).fetchone()
    assert row is not None
    session.execute(
        "update aivedio.task_attempts set callback_token_hash = %s, provider_task_id = %s,"
        " next_poll_at = now() + interval '1 hour' where id = %s",
        [hashlib.sha256(token.encode()).digest(), job, row[0]],
    )
    found: uuid.UUID = row[0]
    return found


def is_due(session: psycopg.Connection[Any], attempt_id: uuid.UUID) -> bool:
    """Let the inbox apply what waits, and tell whether the attempt's poll is due now."""
    session.execute("select aivedio.process_inbox('{0,1,2,3,4,5,6,7}')")
    row = session.execute(
        "select next_poll_at <= now() from aivedio.task_attempts where id = %s", [attempt_id]
    ).fetchone()
    assert row is not None
    return bool(row[0])
