"""
Signatures as providers make them, by the libraries that they use themselves or recommend.

Nothing here is shared with those who verify.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric import ed25519
from standardwebhooks.webhooks import Webhook

from edge.pretend.callbacks import Sending


def standard_webhooks(key: bytes, sending: Sending) -> dict[str, str]:
    """Sign as Standard Webhooks does, version 1, with an HMAC key."""
    used = hashlib.sha256(key).digest() if sending.forged else key
    return {
        "webhook-id": sending.id,
        "webhook-timestamp": str(int(sending.at.timestamp())),
        "webhook-signature": Webhook(used).sign(sending.id, sending.at, sending.body.decode()),
    }


def standard_key(secret: str) -> bytes:
    """Return the key that a `whsec_…` secret holds. Raises ValueError."""
    if not secret.startswith("whsec_"):
        raise ValueError("the webhook secret must start with whsec_")
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


def hex_hmac(secret: str, message: bytes, sending: Sending) -> str:
    """Return the HMAC-SHA256 of a message under the secret's own characters, in hex."""
    key = secret[::-1] if sending.forged else secret
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()


def base64_hmac(secret: str, message: bytes, sending: Sending) -> str:
    """Return the same in base64."""
    return base64.b64encode(bytes.fromhex(hex_hmac(secret, message, sending))).decode()


def ed25519_key(secret: str, *, forged: bool = False) -> ed25519.Ed25519PrivateKey:
    """Return the key pair that belongs to a secret."""
    seed = hashlib.sha256(secret.encode() + (b"forged" if forged else b"")).digest()
    return ed25519.Ed25519PrivateKey.from_private_bytes(seed)
