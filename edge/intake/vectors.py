"""
Known signatures, and whether our verifiers judge them as they should.

A vector is a delivery with its key, the moment at which it is judged, and the verdict that is
expected: `valid`, `invalid`, `valid-for-…-only` (with that sender's settings), and `either` or
`unknown`, which are free. Settings that the vector's sender has in its profile, such as the name of
a header, are known here for common senders; a vector may bring others as `webhook`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from edge.intake import jwks
from edge.intake.signatures import SCHEMES, Delivery, Failure, Key, Settings, Verified

SENDERS: Mapping[str, Settings] = {
    "mux": {"signature_header": "mux-signature"},
    "openai": {"secret_format": "by_prefix"},
    "stripe": {"signature_header": "stripe-signature"},
    "svix": {"header_prefix": "svix"},
    "sync.so": {"signature_header": "sync-signature"},
}
FREE = frozenset({"either", "unknown"})


class BadVectors(Exception):
    """The document does not hold vectors; the text says where."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A vector and what became of it. `agrees` is None where any verdict will do."""

    name: str
    scheme: str
    expected: str
    verdict: str
    agrees: bool | None


def judge_all(document: object) -> Sequence[Judged]:
    """Judge every vector of a document. Raises `BadVectors`."""
    vectors = document.get("vectors") if isinstance(document, dict) else None
    if not isinstance(vectors, list):
        raise BadVectors('the document is no object with a list "vectors"')
    judged: list[Judged] = []
    for number, vector in enumerate(vectors):
        try:
            judged.append(judge(vector))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadVectors(f"vector {number}: {type(error).__name__} {error}") from None
    return judged


def judge(vector: Mapping[str, Any]) -> Judged:
    """Judge one vector. Raises KeyError, TypeError, ValueError or AttributeError for none."""
    name, scheme, expected = str(vector["name"]), str(vector["scheme"]), str(vector["expected"])
    if scheme not in SCHEMES:
        return Judged(name, scheme, expected, "no such scheme", False)
    verdict = verify(vector)
    word = "valid" if isinstance(verdict, Verified) else f"invalid ({verdict})"
    if expected in FREE:
        agrees = None
    elif expected == "valid" or expected.startswith("valid-for-"):
        agrees = isinstance(verdict, Verified)
    elif expected == "invalid":
        agrees = isinstance(verdict, Failure)
    else:
        raise ValueError(f"expected is {expected!r}")
    return Judged(name, scheme, expected, word, agrees)


def verify(vector: Mapping[str, Any]) -> Verified | Failure:
    """Return our verdict about a vector."""
    settings: dict[str, Any] = {
        **SENDERS.get(str(vector.get("provider")), {}),
        **vector.get("webhook", {}),
    }
    if vector.get("tolerance_s") is not None:
        settings["tolerance_s"] = vector["tolerance_s"]
    verifier = SCHEMES[vector["scheme"]](settings)

    keys: list[Key] = []
    if vector.get("secret") is not None:
        key = verifier.key("current", vector["secret"])
        keys = [key] if key is not None else []
    elif vector.get("jwks") is not None:
        keys = [
            replace(key, audience=vector.get("audience"))
            for key in jwks.from_document(vector["jwks"])
        ]
    return verifier.verify(delivery(vector), keys, float(vector["now"]))


def delivery(vector: Mapping[str, Any]) -> Delivery:
    """Return the request of a vector. A header that is a list was sent so many times."""
    headers: dict[str, list[str]] = {}
    for name, value in vector["headers"].items():
        headers.setdefault(name.lower(), []).extend([value] if isinstance(value, str) else value)
    return Delivery(
        vector["body"].encode(),
        headers,
        method=vector.get("method") or "POST",
        path=vector.get("path") or "/",
        query=vector.get("query") or "",
    )
