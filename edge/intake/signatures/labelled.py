"""One header with a timestamp and signatures under labels, like `t=1700000000,v1=<hex>`."""

from __future__ import annotations

from collections.abc import Sequence

from edge.intake.signatures.judging import (
    MAX_SIGNATURES,
    Delivery,
    Failure,
    Key,
    Refusal,
    SecretVerifier,
    Settings,
    Verified,
    age,
    from_hex,
    header,
    header_setting,
    hmac_signer,
    seconds,
    tolerance_setting,
)


class Labelled(SecretVerifier):
    """HMAC-SHA256 in hexadecimal of `<timestamp>.<body>`."""

    time_label: str
    signature_label: str
    default_header: str | None = None

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._header = header_setting(settings, "signature_header", self.default_header)
        self._tolerance = tolerance_setting(settings)

    def _judge(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified:
        timestamp, candidates = self._read(header(delivery, self._header))
        at = seconds(timestamp)
        signer = hmac_signer(keys, timestamp.encode() + b"." + delivery.body, candidates)
        return Verified(signer, age(at, now, self._tolerance))

    def _read(self, value: str) -> tuple[str, list[bytes]]:
        """Return the timestamp and the signatures. Other labels are other versions' business."""
        items = value.split(",")
        if len(items) > MAX_SIGNATURES:
            raise Refusal(Failure.MALFORMED)
        timestamps: list[str] = []
        candidates: list[bytes] = []
        for item in items:
            label, separator, content = item.partition("=")
            if not separator:
                raise Refusal(Failure.MALFORMED)
            if label == self.time_label:
                timestamps.append(content)
            elif label == self.signature_label:
                signature = from_hex(content, 32)
                if signature is None:
                    raise Refusal(Failure.MALFORMED)
                candidates.append(signature)
        if len(timestamps) != 1 or not candidates:
            raise Refusal(Failure.MALFORMED)
        return timestamps[0], candidates


class TimeV1(Labelled):
    """`t=…,v1=…`, as Mux, sync.so and Stripe send it, each in a header of its own."""

    time_label, signature_label = "t", "v1"


class TimeSig1(Labelled):
    """`time=…,sig1=…`, as Cloudflare Stream sends it."""

    time_label, signature_label = "time", "sig1"
    default_header = "webhook-signature"
