"""The part of a history that is said to providers and heard from them."""

from __future__ import annotations

import json
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.py.convergence.lockstep import Lockstep
from tests.py.convergence.payloads import body_of, digest, job_of, response
from tests.py.convergence.things import (
    Attempt,
    Delivery,
    Seen,
)

ACCEPT = """
select answer.is_new from aivedio.accept_callbacks(array[
  row(1, %s, %s::jsonb, %s, %s, 'current', %s, %s, 'trace', null)::aivedio.received_callback
]) as answer
"""


class Talks(Lockstep):
    """Submissions, callbacks, polls, cancellations."""

    # Submissions

    def claim_submits(self) -> list[Attempt]:
        requests = self._call(
            "select attempt_id, lease_token, body ->> 'hook'"
            " from aivedio.claim_submits('worker', 100, 'https://us.example')"
        )
        handed = self.model.claim_submits()
        assert {attempt_id for attempt_id, *_ in requests} == {attempt.id for attempt in handed}
        for attempt_id, token, hook in requests:
            (attempt,) = (a for a in handed if a.id == attempt_id)
            assert token == attempt.submit_token
            attempt.token = hook.rsplit("/", 1)[1]
        self.comparison.check()
        return handed

    def settle_submit(
        self, attempt: Attempt, answer: str, *, token: int | None = None, job: str | None = None
    ) -> str:
        """Answer a submission: accepted, rejected, not_sent, busy, timeout, broken or nameless."""
        job = job or job_of(attempt)
        meaning, outcome = {
            "accepted": ("accepted", response(201, {"id": job})),
            "rejected": ("rejected", response(422, {"detail": "no"})),
            "not_sent": ("again", {"kind": "not_sent", "error": "ConnectError"}),
            "busy": ("again", {**response(429, {}), "retry_after_s": 30}),
            "timeout": ("unknown", {"kind": "timeout", "error": "ReadTimeout"}),
            "broken": ("unknown", response(502, {})),
            "nameless": ("unknown", response(201, {})),
        }[answer]
        token = attempt.submit_token if token is None else token
        told = self._call(
            "select verdict from aivedio.settle_submit(%s, %s, %s)",
            *(attempt.id, token, Jsonb(outcome)),
        )
        wait = 30.0 if answer == "busy" else 0.0
        verdict = self.model.settle_submit(attempt, token, meaning, job, wait)
        return self._agree("submission", verdict, told)

    # Observations

    def callback(
        self,
        attempt: Attempt,
        seen: Seen,
        *,
        clues: str = "token client job",
        event: str | None = None,
        other: Attempt | None = None,
    ) -> str:
        """Deliver a callback that names its attempt by some clues; answer its event."""
        provider = attempt.task.provider
        event = event or self._next_event()
        body = {
            "id": seen.job if "job" in clues else None,
            "ref": str((other or attempt).id) if "client" in clues else None,
            **body_of("webhook", seen),
        }
        by_token = attempt if "token" in clues and attempt.token else None
        delivery = Delivery(
            event,
            provider,
            seen if "job" in clues else seen._replace(job=None),
            by_token,
            (other or attempt) if "client" in clues else None,
            seen.job if "job" in clues else None,
        )
        return self._deliver(delivery, json.dumps(body), by_token)

    def hint(self, attempt: Attempt) -> str:
        """Call without a signature: somebody who knows the token says that there is news."""
        assert attempt.token
        event = f"hint:{digest(attempt.token).hex()}"
        delivery = Delivery(event, attempt.task.provider, None, attempt, None, None)
        return self._deliver(delivery, "{}", attempt)

    def _next_event(self) -> str:
        self.events += 1
        return f"evt-{self.events}"

    def _deliver(self, delivery: Delivery, body: str, by_token: Attempt | None) -> str:
        ((told,),) = self._call(
            ACCEPT,
            *(delivery.provider.name, json.dumps({"webhook-id": delivery.event}), body),
            *(digest(body), delivery.seen is not None),
            digest(by_token.token) if by_token and by_token.token else None,
        )
        assert told == self.model.accept_callback(delivery)
        self.comparison.check()
        return delivery.event

    def work(self, limit: int = 50) -> list[str | None]:
        """Let the inbox worker apply what waits; answer the verdicts."""
        ((claimed,),) = self._call(
            "select claimed from aivedio.process_inbox('{0,1,2,3,4,5,6,7}', %s)", limit
        )
        done = self.model.process_inbox(limit)
        assert claimed == len(done)
        self.comparison.check()
        return [delivery.verdict for delivery in done]

    def see(self, attempt: Attempt, seen: Seen) -> str:
        """Apply an observation that reconciliation made by itself."""
        answer = self._call(
            "select (aivedio.apply_observation(seen)).verdict from jsonb_populate_record("
            "null::aivedio.provider_observation, %s) as seen",
            Jsonb(
                {
                    "provider": attempt.task.provider.name,
                    "attempt_id": str(attempt.id),
                    "source": seen.source,
                    "normalized_status": seen.status,
                    "provider_word": seen.status or "melting",
                    "progress": seen.progress,
                    "provider_sequence": seen.sequence,
                    "provider_revision": seen.revision,
                    "provider_task_id": seen.job,
                    "error_code": seen.error,
                }
            ),
        )
        return self._agree(
            "reconcile", self.model.observe(attempt, seen._replace(outputs=0)), answer
        )

    # Polls

    def claim_polls(self) -> list[Attempt]:
        requests = self._call("select attempt_id, lease_token from aivedio.claim_polls('w', 100)")
        told: dict[UUID, int] = dict(requests)
        due = self.model.claim_polls()
        handed = [attempt for attempt in due if attempt.id in told]
        assert len(handed) == len(told), "a poll was handed out that is not due"
        if not self.model.blocked:
            assert handed == due, "a poll that is due was not handed out"
        for attempt in handed:
            self.model.leased_for_poll(attempt)
            assert told[attempt.id] == attempt.poll_token
        self.comparison.check()
        return handed

    def settle_poll(
        self,
        attempt: Attempt,
        answer: str | Seen,
        *,
        token: int | None = None,
    ) -> str:
        """Answer a poll with what it saw, or not_found, busy, timeout, broken, malformed."""
        seen: Seen | None = None
        if isinstance(answer, Seen):
            meaning, seen = "body", answer
            outcome = response(200, {"id": seen.job, **body_of("poll", seen)})
        else:
            meaning, outcome = {
                "not_found": ("not_found", response(404, {})),
                "busy": ("throttled", {**response(429, {}), "retry_after_s": 20}),
                "timeout": ("retry", {"kind": "timeout", "error": "ReadTimeout"}),
                "broken": ("retry", response(503, {})),
                "malformed": (
                    "malformed",
                    {"kind": "malformed", "http_status": 200, "sample": "<"},
                ),
            }[answer]
        token = attempt.poll_token if token is None else token
        told = self._call(
            "select verdict from aivedio.settle_poll(%s, %s, %s)",
            *(attempt.id, token, Jsonb(outcome)),
        )
        verdict = self.model.settle_poll(attempt, token, meaning, seen, 20.0)
        return self._agree("poll", verdict, told)

    # Cancellations

    def claim_cancels(self) -> list[Attempt]:
        told = {
            attempt_id
            for (attempt_id,) in self._call(
                "select attempt_id from aivedio.claim_cancels('worker', 100)"
            )
        }
        handed = self.model.claim_cancels()
        assert told == {attempt.id for attempt in handed}
        self.comparison.check()
        return handed

    def settle_cancel(self, attempt: Attempt, answer: str, *, token: int | None = None) -> str:
        """Answer a cancellation: confirmed, refused or broken."""
        meaning, status = {
            "confirmed": ("accepted", 200),
            "refused": ("given_up", 409),
            "broken": ("again", 500),
        }[answer]
        token = attempt.cancel_token if token is None else token
        told = self._call(
            "select verdict from aivedio.settle_cancel(%s, %s, %s)",
            *(attempt.id, token, Jsonb(response(status, {}))),
        )
        return self._agree("cancellation", self.model.settle_cancel(attempt, token, meaning), told)
