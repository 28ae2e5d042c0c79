"""
Standard Webhooks, as standardwebhooks.com defines it: `v1` by HMAC-SHA256, `v1a` by Ed25519.

Items of the signature list that are not well formed are skipped, as are those of other versions:
a sender may sign in several ways at once. The scheme's own library is not used, because it takes
fractions of a second, stops at a malformed item, and keeps a clock of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

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
    from_base64,
    header,
    header_setting,
    hmac_signer,
    octets,
    seconds,
    tolerance_setting,
)


class StandardWebhooks(SecretVerifier):
    """Version `v1`: both sides know the secret."""

    version = "v1"
    signature_size = 32

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "base64")
        self._prefix = header_setting(settings, "header_prefix", "webhook")
        self._tolerance = tolerance_setting(settings)

    def _judge(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified:
        message_id, timestamp, signatures = (
            header(delivery, f"{self._prefix}-{part}") for part in ("id", "timestamp", "signature")
        )
        at = seconds(timestamp)
        candidates = self._candidates(signatures)
        if not candidates:
            raise Refusal(Failure.MALFORMED)
        content = b".".join((octets(message_id), timestamp.encode(), delivery.body))
        # The age is judged last: only a signed timestamp says anything.
        signer = self._signer(keys, content, candidates)
        return Verified(signer, age(at, now, self._tolerance))

    def _signer(self, keys: Sequence[Key], content: bytes, candidates: list[bytes]) -> str:
        return hmac_signer(keys, content, candidates)

    def _candidates(self, signatures: str) -> list[bytes]:
        candidates: list[bytes] = []
        for item in signatures.split(" ", MAX_SIGNATURES)[:MAX_SIGNATURES]:
            version, _, encoded = item.partition(",")
            if version == self.version:
                signature = from_base64(encoded, self.signature_size)
                if signature is not None:
                    candidates.append(signature)
        return candidates


class StandardWebhooksPublic(StandardWebhooks):
    """Version `v1a`: we know the public key only, `whpk_<base64>`."""

    version = "v1a"
    signature_size = 64

    def key(self, version: str, text: str) -> Key | None:
        """Return the public key of `whpk_<base64>`."""
        raw = from_base64(text.removeprefix("whpk_"), 32)
        return None if raw is None else Key(version, Ed25519PublicKey.from_public_bytes(raw))

    def _signer(self, keys: Sequence[Key], content: bytes, candidates: list[bytes]) -> str:
        return ed25519_signer(keys, content, candidates)


def ed25519_signer(keys: Sequence[Key], content: bytes, candidates: Sequence[bytes]) -> str:
    """Return the version of the key that made one of `candidates` over `content`, or refuse."""
    if not keys:
        raise Refusal(Failure.NO_KEY)
    for key in keys:
        if not isinstance(key.material, Ed25519PublicKey):
            continue
        for signature in candidates:
            try:
                key.material.verify(signature, content)
            except InvalidSignature:
                continue
            return key.version
    raise Refusal(Failure.MISMATCH)
