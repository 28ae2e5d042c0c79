"""
Vidu signs the request line and two headers, but not the body.

So a callback proves that Vidu called under the address that we gave it, and not what it said.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from edge.intake.signatures.judging import (
    Delivery,
    Failure,
    Key,
    Refusal,
    SecretVerifier,
    Settings,
    Verified,
    age,
    from_base64,
    header,
    hmac_signer,
    octets,
    tolerance_setting,
)

# Other sets of headers may be announced, but would not be Vidu's: all that is signed is fixed here.
_SIGNED = ("Date", "x-request-nonce")
_ACCESS_KEY = "vidu"
_DATE = "%a, %d %b %Y %H:%M:%S GMT"


class Vidu(SecretVerifier):
    """HMAC-SHA256 with the API key under which the job was submitted."""

    covers_body = False

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._tolerance = tolerance_setting(settings)

    def _judge(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified:
        signature = from_base64(header(delivery, "x-hmac-signature"), 32)
        if (
            signature is None
            or header(delivery, "x-hmac-algorithm") != "hmac-sha256"
            or header(delivery, "x-hmac-access-key") != _ACCESS_KEY
            or header(delivery, "x-hmac-signed-headers") != ";".join(_SIGNED)
        ):
            raise Refusal(Failure.MALFORMED)
        date = header(delivery, "date")
        at = _moment(date)
        lines = [delivery.method, delivery.path, delivery.query, _ACCESS_KEY, date]
        lines += [f"{name}:{header(delivery, name.lower())}" for name in _SIGNED]
        content = octets("".join(f"{line}\n" for line in lines))
        signer = hmac_signer(keys, content, [signature])
        return Verified(signer, age(at, now, self._tolerance))


def _moment(text: str) -> float:
    try:
        moment = datetime.strptime(text, _DATE)
    except ValueError:
        raise Refusal(Failure.MALFORMED) from None
    # strptime also takes a single digit, or spaces in a row.
    if moment.strftime(_DATE) != text:
        raise Refusal(Failure.MALFORMED)
    return moment.replace(tzinfo=UTC).timestamp()
