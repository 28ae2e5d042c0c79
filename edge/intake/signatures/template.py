"""
HMAC-SHA256 of a template: what is signed is a text with {body}, {timestamp} and {header:NAME}.

Several providers differ in nothing but names of headers; each is a class with its own defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

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
    from_hex,
    header,
    header_setting,
    hmac_signer,
    octets,
    seconds,
    text_setting,
    tolerance_setting,
)

_PLACE = re.compile(r"\{(body|timestamp|header:([A-Za-z0-9-]{1,64}))\}")


class Template(SecretVerifier):
    """The signature stands alone in a header, behind `signature_prefix`."""

    decode: Callable[[str, int], bytes | None]
    default_headers: tuple[str, ...] = ()
    default_timestamp: str | None = None
    default_content: str | None = None
    default_prefix = ""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.get("signature_header") is None and self.default_headers:
            self._headers = self.default_headers
        else:
            self._headers = (header_setting(settings, "signature_header"),)
        self._prefix = text_setting(settings, "signature_prefix", self.default_prefix)
        self._tolerance = tolerance_setting(settings)
        self._literals, self._places = _parts(
            text_setting(settings, "content", self.default_content)
        )
        self._timestamp = (
            header_setting(settings, "timestamp_header", self.default_timestamp)
            if "timestamp" in self._places
            else None
        )
        self.covers_body = "body" in self._places

    def _judge(self, delivery: Delivery, keys: Sequence[Key], now: float) -> Verified:
        text = self._signature(delivery)
        signature = type(self).decode(text.removeprefix(self._prefix), 32)
        if signature is None or not text.startswith(self._prefix):
            raise Refusal(Failure.MALFORMED)
        at = None if self._timestamp is None else seconds(header(delivery, self._timestamp))
        signer = hmac_signer(keys, self._content(delivery), [signature])
        return Verified(signer, None if at is None else age(at, now, self._tolerance))

    def _signature(self, delivery: Delivery) -> str:
        sent = [name for name in self._headers if delivery.headers.get(name)]
        found = {header(delivery, name) for name in sent or self._headers[:1]}
        if len(found) > 1:
            raise Refusal(Failure.MALFORMED)
        return found.pop()

    def _content(self, delivery: Delivery) -> bytes:
        content = [self._literals[0].encode()]
        for place, literal in zip(self._places, self._literals[1:], strict=True):
            if place == "body":
                content.append(delivery.body)
            else:
                name = self._timestamp if place == "timestamp" else place
                assert name is not None
                content.append(octets(header(delivery, name)))
            content.append(literal.encode())
        return b"".join(content)


def _parts(content: str) -> tuple[list[str], list[str]]:
    """Return the texts between the places, and the places: body, timestamp or a header's name."""
    literals: list[str] = []
    places: list[str] = []
    end = 0
    for match in _PLACE.finditer(content):
        literals.append(content[end : match.start()])
        places.append(match[2].lower() if match[2] else match[1])
        end = match.end()
    literals.append(content[end:])
    if any("{" in literal or "}" in literal for literal in literals) or not places:
        raise ValueError("content must be text with {body}, {timestamp} and {header:NAME}")
    return literals, places


class HmacHex(Template):
    """Everything as the profile says, in hexadecimal."""

    decode = staticmethod(from_hex)


class HmacBase64(Template):
    """Everything as the profile says, in base64."""

    decode = staticmethod(from_base64)


class GitHub(HmacHex):
    """`sha256=<hex>` of the body. There is no timestamp, so a replay is known by its body only."""

    default_headers = ("x-hub-signature-256",)
    default_prefix = "sha256="
    default_content = "{body}"


class HeyGen(HmacHex):
    """
    The body alone is signed. Timestamp and event id are in headers that anybody may rewrite, so
    they are not looked at. Older endpoints send the same signature under another name; whoever
    sends both must send one signature.
    """

    default_headers = ("heygen-signature", "signature")
    default_content = "{body}"


class Synthesia(HmacHex):
    """Timestamp and body."""

    default_headers = ("synthesia-signature",)
    default_timestamp = "synthesia-timestamp"
    default_content = "{timestamp}.{body}"
