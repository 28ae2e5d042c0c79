"""The providers of the model as the database knows them, and what they say over the wire."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.py.convergence.arrivals import ORPHAN_TRIES
from tests.py.convergence.things import LIFE, Attempt, Seen
from tests.py.support.sessions import Connection, rows

WORDS = {
    "webhook": {
        "Q": "queued",
        "R": "running",
        "OK": "succeeded",
        "BAD": "failed",
        "STOP": "canceled",
    },
    "poll": {"q": "queued", "r": "running", "ok": "succeeded", "bad": "failed", "stop": "canceled"},
}


def profile(*, corrects: bool, cancels: bool) -> dict[str, Any]:
    """Return a profile that reads everything that an observation can hold."""
    return {
        "base_url": "https://provider.example",
        "auth": {"kind": "bearer", "prefix": "Bearer ", "secret": "env:MODEL_TOKEN"},
        "submit": {
            "method": "POST",
            "path": "/jobs",
            "body": {"input": "{input}", "ref": "{client_request_id}", "hook": "{callback_url}"},
            "accepted": [200, 201],
            "provider_task_id": "$.id",
        },
        "poll": {"method": "GET", "path": "/jobs/{provider_task_id}", "circuit_faults": 1000},
        "cancel": {"method": "POST", "path": "/jobs/{provider_task_id}/cancel", "confirmed": [200]}
        if cancels
        else None,
        "webhook": {
            "scheme": "standard-webhooks-v1",
            "secrets": [{"ref": "env:MODEL_SECRET", "version": "current"}],
            "event_id_header": "webhook-id",
            "signed": True,
            "keep_headers": ["webhook-id"],
        },
        "fields": {
            "provider_task_id": "$.id",
            "client_request_id": "$.ref",
            "status": "$.status",
            "progress": "$.pct",
            "sequence": "$.seq",
            "revision": "$.rev" if corrects else None,
            "outputs": "$.out",
            "error_message": "$.error",
        },
        "words": WORDS,
        "errors": [{"match": "nsfw", "class": "content_refused", "code": "content_refused"}],
        "output_lifetime_s": 3600,
        "credits": 1,
        "deadline_s": LIFE,
        "quota": {"provider": 1000, "model": 1000},
    }


PROVIDERS = {"lumen": (True, True), "zephyr": (False, False)}


def prepare(session: Connection) -> None:
    """Define the model's providers in a database, once."""
    for name, (corrects, cancels) in PROVIDERS.items():
        body = Jsonb(profile(corrects=corrects, cancels=cancels))
        rows(session, "select aivedio.define_provider(%s, %s)", name, body)
    rows(
        session,
        "update aivedio.settings set value = to_jsonb(%s::int) where name = 'orphan_retries'",
        ORPHAN_TRIES,
    )


def job_of(attempt: Attempt) -> str:
    """Return the id under which the provider holds an attempt."""
    return job_id(attempt.id)


def job_id(attempt: UUID) -> str:
    return f"job-{attempt.hex}"


def response(status: int, body: object) -> dict[str, Any]:
    return {"kind": "response", "http_status": status, "body": body}


def body_of(source: str, seen: Seen) -> dict[str, Any]:
    words = {status: word for word, status in WORDS[source].items()}
    return {
        "status": words[seen.status] if seen.status else "melting",
        "pct": seen.progress,
        "seq": seen.sequence,
        "rev": seen.revision,
        "out": [f"https://provider.example/{n}.mp4" for n in range(seen.outputs)],
        "error": "nsfw" if seen.error == "content_refused" else None,
    }


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
