"""Signs as a provider does, with the library that providers use; the edge has its own code."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime

from standardwebhooks.webhooks import Webhook

SECRET = "whsec_" + base64.b64encode(b"a key of twenty-four byte").decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"another key, longer still").decode()


def sign(
    body: bytes,
    *,
    secret: str = SECRET,
    event_id: str = "msg_1",
    at: float | None = None,
) -> dict[str, str]:
    """Return the headers of a signed Standard Webhooks delivery of `body`."""
    seconds = int(time.time() if at is None else at)
    stamp = datetime.fromtimestamp(seconds, tz=UTC)
    return {
        "content-type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": Webhook(secret).sign(event_id, stamp, body.decode()),
    }
