"""Every scheme: known vectors, independent senders, and what must never be accepted."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import assume, example, given, strategies as st
from typer.testing import CliRunner

from edge.cli.app import app
from edge.intake import jwks, vectors
from edge.intake.signatures import SCHEMES, Delivery, Failure, Key, Verified
from edge.intake.signatures.judging import from_base64, from_hex, secret_by_prefix
from tests.py.intake.signers import AUDIENCE, RSA, SENDERS, Sender

FILE = Path(__file__).parent / "vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text())["vectors"]
NOW = 1_767_225_600

schemes = st.sampled_from(sorted(SENDERS))


def test_there_is_a_sender_for_every_scheme() -> None:
    assert set(SENDERS) == set(SCHEMES)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_a_known_vector_is_judged_as_expected(vector: dict[str, Any]) -> None:
    judged = vectors.judge(vector)
    assert judged.agrees is not False, judged


def test_vectors_of_every_provider_scheme_are_known() -> None:
    generic = {"hmac-hex", "hmac-base64"}
    assert {vector["scheme"] for vector in VECTORS} == set(SCHEMES) - generic


@pytest.mark.parametrize("scheme", SENDERS)
def test_what_its_sender_signs_is_accepted_and_the_key_named(scheme: str) -> None:
    sender = SENDERS[scheme]
    assert SCHEMES[scheme](sender.settings).covers_body is sender.covers_body
    verified = sender.judge(sender.delivery(b'{"a": 1.0}', NOW), NOW + 7)
    assert isinstance(verified, Verified)
    assert verified.version == {"fal-ed25519": "ed", "gemini-dynamic-jwt": "rs"}.get(
        scheme, "current"
    )
    assert verified.age == (7 if sender.has_time else None)


@pytest.mark.parametrize("scheme", SENDERS)
def test_without_a_key_nothing_is_accepted(scheme: str) -> None:
    """W7"""
    sender = SENDERS[scheme]
    verifier = SCHEMES[scheme](sender.settings)
    assert verifier.verify(sender.delivery(b"{}", NOW), [], NOW) is Failure.NO_KEY


@given(scheme=schemes, shift=st.integers(-2000, 2000))
@example("fal-ed25519", 301)
@example("fal-ed25519", -301)
def test_old_and_future_timestamps_are_refused(scheme: str, shift: int) -> None:
    """W5"""
    sender = SENDERS[scheme]
    verdict = sender.judge(sender.delivery(b"{}", NOW), NOW + shift)
    if not sender.has_time or abs(shift) <= 300:
        assert isinstance(verdict, Verified)
    else:
        assert verdict is (Failure.TOO_OLD if shift > 0 else Failure.TOO_NEW)


@given(scheme=schemes, body=st.binary(max_size=60), other=st.binary(max_size=60))
def test_another_body_is_refused(scheme: str, body: bytes, other: bytes) -> None:
    """W1"""
    assume(body != other)
    sender = SENDERS[scheme]
    forged = replace(sender.delivery(body, NOW), body=other)
    assert isinstance(sender.judge(forged, NOW), Failure) is sender.covers_body


@given(scheme=schemes, place=st.integers(0, 2000), put=st.characters(max_codepoint=0x7E))
def test_a_changed_signature_is_refused(scheme: str, place: int, put: str) -> None:
    sender = SENDERS[scheme]
    delivery = sender.delivery(b'{"a": 1}', NOW)
    signature = delivery.headers[sender.signature][0]
    place %= len(signature)
    changed = signature[:place] + put + signature[place + 1 :]
    assume(not _same(signature, changed))
    headers = {**delivery.headers, sender.signature: [changed]}
    assert isinstance(sender.judge(replace(delivery, headers=headers), NOW), Failure)


@pytest.mark.parametrize("scheme", SENDERS)
def test_every_header_must_be_there_once(scheme: str) -> None:
    sender = SENDERS[scheme]
    delivery = sender.delivery(b"{}", NOW)
    for name in sender.sign(b"{}", NOW):
        value = delivery.headers[name][0]
        for values, failure in (
            ([], Failure.MISSING),
            ([""], Failure.MISSING),
            ([value, value], Failure.MALFORMED),
            (["x" * 9000], Failure.MALFORMED),
        ):
            headers = {**delivery.headers, name: values}
            assert sender.judge(replace(delivery, headers=headers), NOW) is failure, name


def test_what_the_database_takes_for_covered_is_covered(
    connect: Callable[..., psycopg.Connection[Any]],
) -> None:
    """An event id counts only where the signature covers it: both sides must mean the same."""
    session = connect(autocommit=True)
    for sender in SENDERS.values():
        delivery = sender.delivery(b"{}", NOW)
        covered = {
            name
            for name in delivery.headers
            if name != sender.signature and not _holds_without(sender, delivery, name)
        }
        webhook = {**sender.settings, "scheme": sender.scheme}
        row = session.execute("select aivedio._signed_headers(%s)", [json.dumps(webhook)])
        known = row.fetchone()
        assert known is not None
        expected = covered if sender.covers_body else set()
        assert set(known[0]) == expected, sender.scheme


def _holds_without(sender: Sender, delivery: Delivery, name: str) -> bool:
    """Whether the signature still holds when a header says something else of the same kind."""
    value = delivery.headers[name][0]
    other = value[:-1] + ("0" if value[-1] != "0" else "1")
    headers = {**delivery.headers, name: [other]}
    return isinstance(sender.judge(replace(delivery, headers=headers), NOW), Verified)


def _same(one: str, other: str) -> bool:
    """Whether two texts stand for the same signature: hexadecimal in any case, idle base64 bits."""
    if one.lower() == other.lower() and ("=" in one or from_hex(one, len(one) // 2)):
        return "v1," not in one and "v1a," not in one
    first, second = (text.rpartition(",")[2].rpartition(".")[2] for text in (one, other))
    if one.removesuffix(first) != other.removesuffix(second):
        return False
    decoded = [
        from_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
        for text in (first, second)
    ]
    return decoded[0] is not None and decoded[0] == decoded[1]


# Header values of every shape that a parser could stumble over.
pieces = st.sampled_from(
    ["t=", "v1=", "v1,", "v1a,", "time=", "sig1=", "sha256=", ",", " ", "=", ".", ";", "1767225600"]
    + ["ab" * 32, "AA==", "A" * 43 + "=", "Thu, 01 Jan 2026 00:00:00 GMT", "vidu", "hmac-sha256"]
    + ["Date;x-request-nonce", "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzIn0", "é", "\x00", "١"]
)
values = st.lists(
    st.one_of(st.lists(pieces, max_size=8).map("".join), st.text(max_size=60)), max_size=2
)


@given(scheme=schemes, data=st.data(), body=st.binary(max_size=64), now=st.floats(0, 4e9))
def test_any_headers_are_judged_and_none_is_accepted(
    scheme: str, data: st.DataObject, body: bytes, now: float
) -> None:
    sender = SENDERS[scheme]
    names = sorted(sender.delivery(b"", NOW).headers)
    headers = data.draw(st.dictionaries(st.sampled_from(names), values))
    path, query = data.draw(st.text(max_size=20)), data.draw(st.text(max_size=20))
    delivery = Delivery(body, headers, "POST", path, query)
    assert isinstance(sender.judge(delivery, now), Failure)


@given(
    head=st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "x"]),
        st.one_of(st.none(), st.integers(), st.sampled_from(["none", "HS256", "RS256", "rs"])),
    ),
    claims=st.one_of(st.none(), st.integers(), st.dictionaries(st.text(), st.integers())),
    tail=st.binary(max_size=300),
)
def test_any_token_is_judged(head: dict[str, Any], claims: object, tail: bytes) -> None:
    token = ".".join(
        base64.urlsafe_b64encode(part).decode().rstrip("=")
        for part in (json.dumps(head).encode(), json.dumps(claims).encode(), tail)
    )
    delivery = Delivery(b"{}", {"webhook-signature": [token]})
    assert isinstance(SENDERS["gemini-dynamic-jwt"].judge(delivery, NOW), Failure)


GOOD_CLAIMS = {"aud": AUDIENCE, "iat": NOW, "exp": NOW + 60}


@pytest.mark.parametrize(
    ("claims", "headers", "failure"),
    [
        ({"aud": "somebody else"}, {}, Failure.MISMATCH),
        ({"aud": None}, {}, Failure.MISMATCH),
        ({"exp": NOW}, {}, Failure.TOO_OLD),
        ({"iat": NOW + 301}, {}, Failure.TOO_NEW),
        ({"iat": NOW - 301}, {}, Failure.TOO_OLD),
        ({"nbf": NOW + 301}, {}, Failure.TOO_NEW),
        ({"iat": "soon"}, {}, Failure.MALFORMED),
        ({"exp": True}, {}, Failure.MALFORMED),
        ({"exp": None}, {}, Failure.MISMATCH),
        ({}, {"kid": "ed"}, Failure.MISMATCH),
        ({}, {"kid": "unknown"}, Failure.MISMATCH),
        ({}, {"kid": ""}, Failure.MALFORMED),
    ],
)
def test_a_token_says_whom_it_is_for_and_when(
    claims: dict[str, Any], headers: dict[str, Any], failure: Failure
) -> None:
    said = {name: value for name, value in {**GOOD_CLAIMS, **claims}.items() if value is not None}
    token = jwt.encode(said, RSA, algorithm="RS256", headers={"kid": "rs", **headers})
    delivery = Delivery(b"{}", {"webhook-signature": [token]})
    assert SENDERS["gemini-dynamic-jwt"].judge(delivery, NOW) is failure


def test_a_public_key_is_no_secret() -> None:
    """The oldest forgery: HMAC with the published key as the secret."""
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "rs"}, GOOD_CLAIMS)]
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.digest(public, signed, "sha256")).rstrip(b"=")
    token = (signed + b"." + signature).decode()
    delivery = Delivery(b"{}", {"webhook-signature": [token]})
    assert SENDERS["gemini-dynamic-jwt"].judge(delivery, NOW) is Failure.MALFORMED


def test_a_short_rsa_key_counts_for_nothing() -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    entry = {**jwt.algorithms.RSAAlgorithm.to_jwk(short.public_key(), as_dict=True), "kid": "rs"}
    keys = [replace(key, audience=AUDIENCE) for key in jwks.from_document({"keys": [entry]})]
    token = jwt.encode(GOOD_CLAIMS, RSA, algorithm="RS256", headers={"kid": "rs"})
    delivery = Delivery(b"{}", {"webhook-signature": [token]})
    verifier = SCHEMES["gemini-dynamic-jwt"]({})
    assert verifier.verify(delivery, keys, NOW) is Failure.MISMATCH


@pytest.mark.parametrize(
    ("value", "failure"),
    [
        ("t=1767225600", Failure.MALFORMED),
        ("t=1767225600,t=1767225600,v1={}", Failure.MALFORMED),
        ("t=1767225600,,v1={}", Failure.MALFORMED),
        ("t=1767225600,v1={},v1=zz", Failure.MALFORMED),
        ("t=1767225600,v1= {}", Failure.MALFORMED),
        ("t=01767225600,v1={}", Failure.MALFORMED),
        ("t=+176722560,v1={}", Failure.MALFORMED),
        ("t=1767225600,v0={}", Failure.MALFORMED),
        ("t=1767225600" + ",v0=1" * 20 + ",v1={}", Failure.MALFORMED),
        ("time=1767225600,sig1={}", Failure.MALFORMED),
    ],
)
def test_a_list_that_is_no_list_is_refused(value: str, failure: Failure) -> None:
    sender = SENDERS["t-v1-hex"]
    delivery = sender.delivery(b"{}", NOW)
    good = delivery.headers["mux-signature"][0].rpartition("v1=")[2]
    headers: Mapping[str, list[str]] = {"mux-signature": [value.replace("{}", good)]}
    assert sender.judge(replace(delivery, headers=headers), NOW) is failure


def test_heygens_two_headers_say_the_same() -> None:
    sender = SENDERS["heygen-hex-body"]
    delivery = sender.delivery(b"{}", NOW)
    (good,) = delivery.headers["heygen-signature"]
    bad = "0" * 64

    def judged(**headers: str) -> Verified | Failure:
        sent = {name.replace("_", "-"): [value] for name, value in headers.items()}
        return sender.judge(replace(delivery, headers=sent), NOW)

    assert isinstance(judged(signature=good), Verified)
    assert isinstance(judged(heygen_signature=good, signature=good), Verified)
    assert judged(heygen_signature=good, signature=bad) is Failure.MALFORMED
    assert judged(heygen_signature=bad, signature=good) is Failure.MALFORMED
    assert judged(heygen_signature=bad, signature=bad) is Failure.MISMATCH


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-hmac-signed-headers", "Date"),
        ("x-hmac-algorithm", "hmac-sha1"),
        ("x-hmac-access-key", "another"),
        ("date", "Thu, 1 Jan 2026 00:00:00 GMT"),
        ("date", "Thu, 01 Jan 2026 00:00:00 +0000"),
    ],
)
def test_vidu_signs_what_it_says_and_nothing_less(name: str, value: str) -> None:
    sender = SENDERS["vidu-hmac"]
    delivery = sender.delivery(b"{}", NOW)
    headers = {**delivery.headers, name: [value]}
    assert sender.judge(replace(delivery, headers=headers), NOW) is Failure.MALFORMED
    assert sender.judge(replace(delivery, path="/another"), NOW) is Failure.MISMATCH
    assert sender.judge(replace(delivery, query="a=1"), NOW) is Failure.MISMATCH


def test_secret_formats() -> None:
    assert secret_by_prefix("whsec_b2xk") == b"old"
    assert secret_by_prefix("b2xk") == b"b2xk"
    verifier = SCHEMES["t-v1-hex"]({"signature_header": "s", "secret_format": "base64"})
    assert verifier.key("v", "whsec_b2xk") == Key("v", b"old")
    assert SCHEMES["heygen-hex-body"]({}).key("v", "whsec_b2xk") == Key("v", b"whsec_b2xk")
    assert SCHEMES["standard-webhooks-v1a"]({}).key("v", "whpk_AAAA") is None


def test_vectors_are_run_by_the_command_line(tmp_path: Path) -> None:
    run = CliRunner()
    agreed = run.invoke(app, ["providers", "vectors", str(FILE)])
    assert agreed.exit_code == 0
    assert "0 disagree" in agreed.output

    wrong = [
        {**VECTORS[0], "name": "turned round", "expected": "invalid"},
        {**VECTORS[0], "name": "odd", "scheme": "rot13"},
        {**VECTORS[0], "name": "sent twice", "headers": {"webhook-id": ["a", "b"]}},
    ]
    (file := tmp_path / "wrong.json").write_text(json.dumps({"vectors": wrong}))
    disagreed = run.invoke(app, ["providers", "vectors", str(file)])
    assert disagreed.exit_code == 1
    assert "turned round  standard-webhooks-v1: expected invalid, judged valid" in disagreed.output
    assert "no such scheme" in disagreed.output
    assert "3 vectors: 0 agree, 0 may be judged either way, 3 disagree" in disagreed.output

    for text in ("{", "[]", '{"vectors": [{}]}', '{"vectors": [7]}'):
        file.write_text(text)
        assert run.invoke(app, ["providers", "vectors", str(file)]).exit_code == 2
    assert run.invoke(app, ["providers", "vectors", str(tmp_path / "none")]).exit_code == 2
