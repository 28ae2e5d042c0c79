"""
Veo by the Gemini API: long-running operations without a word for their status.

    POST /v1beta/models/{model}:predictLongRunning
    GET  /v1beta/models/{model}/operations/{id}
    GET  /.well-known/jwks.json

`done` with samples is a success, `done` without any a refusal by the safety filters, `done` with
an error a failure. There is one event, of a success, and none of a failure. Where a submission
names its own webhook the event is signed by a token of its own, RS256; the account's endpoint is
signed by Standard Webhooks. What the token claims is not documented: here it is the endpoint as
audience and a time to live.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from edge.pretend.callbacks import Sending
from edge.pretend.dialects.common import Account, Api, Asked, Dialect, Invalid, iso, reply
from edge.pretend.dialects.signing import standard_key, standard_webhooks
from edge.pretend.jobs import Job, Moment, Phase, State
from edge.pretend.studio import Studio, Submission

KEY_ID = "pretend-1"
RETENTION_S = 2 * 86_400.0


class Veo(Dialect):
    """The dialect."""

    submits = ("/v1beta/models/{model}:predictLongRunning",)
    moments = frozenset({Moment.COMPLETED})
    file_lifetime_s = RETENTION_S
    retry_pauses = (1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0, 3600.0)
    shows_queue = False
    tells_failure = False
    signs = True
    words = {phase: str(phase) for phase in Phase}

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._key = standard_key(account.secret) if account.secret else None
        # Made now: making one takes long, and everybody would wait.
        self._tokens = {forged: _rsa_key(forged) for forged in (False, True)}

    def more(self, api: Api) -> list[BaseRoute]:
        """Return the routes of operations and keys."""

        async def keys(request: Request) -> Response:
            return reply({"keys": [_public(self._tokens[False])]})

        return [
            api.route("GET", "/v1beta/models/{model}/operations/{id}", api.ask),
            Route("/.well-known/jwks.json", keys, methods=["GET"]),
        ]

    def find(self, request: Request, studio: Studio) -> Job | None:
        """Return the job of an operation."""
        return studio.book.get(request.path_params["id"])

    def authorised(self, request: Request) -> bool:
        """Answer whether the caller has presented the account's key."""
        return self.has_token(request, "x-goog-api-key", "")

    def read(self, asked: Asked) -> Submission:
        """Return what was asked for."""
        body = asked.body
        if not isinstance(body.get("instances"), list) or not body["instances"]:
            raise Invalid("instances: is required")
        config = body.get("webhook_config") or body.get("webhookConfig") or {}
        uris = config.get("uris") if isinstance(config, dict) else None
        url = uris[0] if isinstance(uris, list) and uris else None
        return self.submission(asked, model=asked.request.path_params["model"], url=url)

    def created(self, job: Job) -> Any:
        """Answer a submission."""
        return {"name": self.name_of(job)}

    def shown(self, job: Job, state: State) -> Any:
        """Return an operation; what is not done has nothing but its name."""
        operation: dict[str, Any] = {"name": self.name_of(job)}
        if not state.phase.is_end:
            return operation
        operation["done"] = True
        if state.has_output:
            video = {"uri": f"{job.file_url}?alt=media"}
            operation["response"] = {
                "generateVideoResponse": {"generatedSamples": [{"video": video}]}
            }
        elif state.error is not None and "safety" in state.error:
            operation["response"] = {
                "generateVideoResponse": {
                    "raiMediaFilteredCount": 1,
                    "raiMediaFilteredReasons": [state.error],
                }
            }
        else:
            operation["error"] = {"code": 13, "message": state.error or "The operation ended."}
        return operation

    def told(self, job: Job, state: State) -> Any | None:
        """Return the event of a success."""
        if not state.has_output:
            return None
        return {
            "type": "video.generated",
            "version": "v1",
            "timestamp": iso(state.completed_at or job.created_at),
            "data": {
                "id": self.name_of(job),
                "output_file_uri": f"{job.file_url}?alt=media",
                "file_name": f"files/{job.id}",
            },
        }

    def signed(self, sending: Sending) -> dict[str, str]:
        """Sign for the account's endpoint with its secret, else with a token."""
        if self.account.endpoint == sending.url and self._key is not None:
            return standard_webhooks(self._key, sending)
        claims = {
            "iss": "https://generativelanguage.googleapis.com",
            "aud": self.account.audience or sending.url,
            "iat": sending.at,
            "exp": sending.at + timedelta(minutes=5),
        }
        token = jwt.encode(
            claims, self._tokens[sending.forged], algorithm="RS256", headers={"kid": KEY_ID}
        )
        return {
            "webhook-id": sending.id,
            "webhook-timestamp": str(int(sending.at.timestamp())),
            "webhook-signature": token,
        }

    def problem(self, status: int, detail: str) -> Any:
        """Return an error as Google words it."""
        return {"error": {"code": status, "message": detail, "status": "INVALID_ARGUMENT"}}

    @staticmethod
    def name_of(job: Job) -> str:
        """Return the name of a job's operation."""
        return f"models/{job.model}/operations/{job.id}"


@cache
def _rsa_key(forged: bool) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _public(key: rsa.RSAPrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()

    def encoded(number: int) -> str:
        raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    return {
        "kty": "RSA",
        "alg": "RS256",
        "use": "sig",
        "kid": KEY_ID,
        "n": encoded(numbers.n),
        "e": encoded(numbers.e),
    }
