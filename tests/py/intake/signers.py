"""Senders of every scheme, written from what providers document, apart from our verifiers."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from edge.intake import jwks
from edge.intake.signatures import SCHEMES, Delivery, Failure, Key, Verified

SECRET = b"a secret of twenty-six byte"
PATH = "/callbacks/p/token"
AUDIENCE = "our project"
ED25519 = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
JWKS = {
    "keys": [
        {**jwt.algorithms.OKPAlgorithm.to_jwk(ED25519.public_key(), as_dict=True), "kid": "ed"},
        {**jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "rs"},
    ]
}

Sign = Callable[..., dict[str, str]]


@dataclass(frozen=True)
class Sender:
    """One way to sign: the settings of its profile, and the headers that it sends."""

    scheme: str
    settings: Mapping[str, Any]
    sign: Sign
    signature: str
    unsigned: Mapping[str, str]
    covers_body: bool = True
    has_time: bool = True

    def delivery(self, body: bytes, at: int) -> Delivery:
        headers = {**self.sign(body, at), **self.unsigned}
        return Delivery(body, {name: [value] for name, value in headers.items()}, "POST", PATH)

    def judge(
        self, delivery: Delivery, now: float, more: Mapping[str, Any] | None = None
    ) -> Verified | Failure:
        verifier = SCHEMES[self.scheme]({**self.settings, **(more or {})})
        return verifier.verify(delivery, self.keys(), now)

    def keys(self) -> list[Key]:
        verifier = SCHEMES[self.scheme](self.settings)
        if verifier.published:
            return [replace(key, audience=AUDIENCE) for key in jwks.from_document(JWKS)]
        text = SECRET.decode()
        if self.scheme == "standard-webhooks-v1":
            text = "whsec_" + base64.b64encode(SECRET).decode()
        if self.scheme == "standard-webhooks-v1a":
            raw = ED25519.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
            text = "whpk_" + base64.b64encode(raw).decode()
        key = verifier.key("current", text)
        assert key is not None
        return [key]


def _mac(content: bytes) -> bytes:
    return hmac.new(SECRET, content, hashlib.sha256).digest()


def _standard(body: bytes, at: int) -> dict[str, str]:
    signature = base64.b64encode(_mac(b"msg_1.%d." % at + body)).decode()
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{signature}",
    }


def _standard_public(body: bytes, at: int) -> dict[str, str]:
    signature = base64.b64encode(ED25519.sign(b"msg_1.%d." % at + body)).decode()
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1a,{signature}",
    }


def _vidu(body: bytes, at: int, path: str = PATH) -> dict[str, str]:
    date = format_datetime(datetime.fromtimestamp(at, tz=UTC), usegmt=True)
    text = f"POST\n{path}\n\nvidu\n{date}\nDate:{date}\nx-request-nonce:n1\n"
    return {
        "date": date,
        "x-request-nonce": "n1",
        "x-hmac-signed-headers": "Date;x-request-nonce",
        "x-hmac-algorithm": "hmac-sha256",
        "x-hmac-access-key": "vidu",
        "x-hmac-signature": base64.b64encode(_mac(text.encode())).decode(),
    }


def _fal(body: bytes, at: int) -> dict[str, str]:
    text = f"r1\nu1\n{at}\n{hashlib.sha256(body).hexdigest()}"
    return {
        "x-fal-webhook-request-id": "r1",
        "x-fal-webhook-user-id": "u1",
        "x-fal-webhook-timestamp": str(at),
        "x-fal-webhook-signature": ED25519.sign(text.encode()).hex(),
    }


def _gemini(body: bytes, at: int) -> dict[str, str]:
    claims = {"iss": "google", "aud": AUDIENCE, "iat": at, "exp": at + 3600}
    return {"webhook-signature": jwt.encode(claims, RSA, algorithm="RS256", headers={"kid": "rs"})}


SENDERS = {
    sender.scheme: sender
    for sender in (
        Sender("standard-webhooks-v1", {}, _standard, "webhook-signature", {"x-event-id": "e1"}),
        Sender("standard-webhooks-v1a", {}, _standard_public, "webhook-signature", {}),
        Sender(
            "t-v1-hex",
            {"signature_header": "Mux-Signature"},
            lambda body, at: {"mux-signature": f"t={at},v1={_mac(b'%d.' % at + body).hex()}"},
            "mux-signature",
            {"x-event-id": "e1"},
        ),
        Sender(
            "time-sig1-hex",
            {},
            lambda body, at: {
                "webhook-signature": f"time={at},sig1={_mac(b'%d.' % at + body).hex()}"
            },
            "webhook-signature",
            {},
        ),
        Sender(
            "github-sha256-hex",
            {},
            lambda body, at: {"x-hub-signature-256": "sha256=" + _mac(body).hex()},
            "x-hub-signature-256",
            {"x-github-delivery": "d1"},
            has_time=False,
        ),
        Sender(
            "heygen-hex-body",
            {},
            lambda body, at: {"heygen-signature": _mac(body).hex()},
            "heygen-signature",
            {"heygen-event-id": "e1", "heygen-timestamp": "1"},
            has_time=False,
        ),
        Sender(
            "synthesia-hex",
            {},
            lambda body, at: {
                "synthesia-timestamp": str(at),
                "synthesia-signature": _mac(b"%d." % at + body).hex(),
            },
            "synthesia-signature",
            {},
        ),
        Sender(
            "hmac-hex",
            {"signature_header": "x-sig", "content": "{body}"},
            lambda body, at: {"x-sig": _mac(body).hex()},
            "x-sig",
            {"x-id": "i1"},
            has_time=False,
        ),
        Sender(
            "hmac-base64",
            {
                "signature_header": "X-Sig",
                "timestamp_header": "X-Time",
                "content": "{header:X-Id}\n{timestamp}\n{body}",
            },
            lambda body, at: {
                "x-id": "i1",
                "x-time": str(at),
                "x-sig": base64.b64encode(_mac(b"i1\n%d\n" % at + body)).decode(),
            },
            "x-sig",
            {"x-other": "o"},
        ),
        Sender("vidu-hmac", {}, _vidu, "x-hmac-signature", {}, covers_body=False),
        Sender("fal-ed25519", {}, _fal, "x-fal-webhook-signature", {"x-event-id": "e1"}),
        Sender(
            "gemini-dynamic-jwt",
            {},
            _gemini,
            "webhook-signature",
            {"webhook-timestamp": "1"},
            covers_body=False,
        ),
    )
}
