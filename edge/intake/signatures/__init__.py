"""
Who signed these bytes: the schemes by which providers sign their callbacks.

Each family has a file of its own. A profile names a scheme of this registry and gives it settings;
`_signature_problems` knows the same names, and `_signed_headers` what each covers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edge.intake.signatures.fal import Fal
from edge.intake.signatures.gemini import GeminiDynamic
from edge.intake.signatures.judging import (
    Delivery,
    Failure,
    Headers,
    Key,
    Settings,
    Verified,
    Verifier,
)
from edge.intake.signatures.labelled import TimeSig1, TimeV1
from edge.intake.signatures.standard import StandardWebhooks, StandardWebhooksPublic
from edge.intake.signatures.template import GitHub, HeyGen, HmacBase64, HmacHex, Synthesia
from edge.intake.signatures.vidu import Vidu

SCHEMES: Mapping[str, Callable[[Settings], Verifier]] = {
    "standard-webhooks-v1": StandardWebhooks,
    "standard-webhooks-v1a": StandardWebhooksPublic,
    "t-v1-hex": TimeV1,
    "time-sig1-hex": TimeSig1,
    "github-sha256-hex": GitHub,
    "heygen-hex-body": HeyGen,
    "synthesia-hex": Synthesia,
    "hmac-hex": HmacHex,
    "hmac-base64": HmacBase64,
    "vidu-hmac": Vidu,
    "fal-ed25519": Fal,
    "gemini-dynamic-jwt": GeminiDynamic,
}

__all__ = ["SCHEMES", "Delivery", "Failure", "Headers", "Key", "Settings", "Verified", "Verifier"]
