"""fal: Ed25519 over its ids, the timestamp and the body's hash; keys are published, unnamed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from edge.intake.signatures.judging import (
    Delivery,
    Failure,
    Key,
    Refusal,
    Settings,
    Verified,
    Verifier,
    age,
    from_hex,
    header,
    octets,
    seconds,
    tolerance_setting,
)
from edge.intake.signatures.standard import ed25519_signer


class Fal(Verifier):
    """No header names the key, so each published one is tried."""

    published = True

    def __init__(self, settings: Settings) -> None:
        self._tolerance = tolerance_setting(settings)

    def _judge(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified:
        request_id, user_id, timestamp, text = (
            header(delivery, f"x-fal-webhook-{part}")
            for part in ("request-id", "user-id", "timestamp", "signature")
        )
        at = seconds(timestamp)
        signature = from_hex(text, 64)
        if signature is None:
            raise Refusal(Failure.MALFORMED)
        digest = hashlib.sha256(delivery.body).hexdigest()
        content = octets("\n".join((request_id, user_id, timestamp, digest)))
        signer = ed25519_signer(keys, content, [signature])
        return Verified(signer, age(at, now, self._tolerance))

    def may_be_rotated(self, failure: Failure, delivery: Delivery, keys: Sequence[Key]) -> bool:
        """A signature that no known key made may be a new key's."""
        return failure is Failure.MISMATCH
