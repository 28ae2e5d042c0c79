"""
Standard Webhooks, strictly.

The constants marked published are those that the scheme's, Kling's and OpenAI's own test suites
use; signatures of the other cases were made with the scheme's formula.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings, strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from edge.intake.signatures import SCHEMES, Delivery, Failure, Headers, Key, Verified
from edge.intake.signatures.judging import base64_secret

GOOD = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
BAD = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="


def standard_webhooks(
    body: bytes, headers: Headers, keys: Sequence[Key], tolerance: float, now: float
) -> Verified | Failure:
    verifier = SCHEMES["standard-webhooks-v1"]({"tolerance_s": tolerance})
    return verifier.verify(Delivery(body, headers), keys, now)


@dataclass(frozen=True)
class Case:
    """A published delivery; a case changes what it is about."""

    secret: str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    id: str | None = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    timestamp: str | None = "1614265330"
    signature: str | None = GOOD
    body: str = '{"test": 2432232314}'
    now: float = 1614265330
    more: dict[str, list[str]] = field(default_factory=dict)

    def judge(self) -> Verified | Failure:
        headers = {
            f"webhook-{name}": [value]
            for name, value in (
                ("id", self.id),
                ("timestamp", self.timestamp),
                ("signature", self.signature),
            )
            if value is not None
        } | self.more
        secret = base64_secret(self.secret)
        keys = [Key("current", secret)] if secret else []
        return standard_webhooks(self.body.encode(), headers, keys, 300, self.now)


PUBLISHED = Case()
OPENAI = Case(
    secret="whsec_RdvaYFYUXuIFuEbvZHwMfYFhUf7aMYjYcmM24+Aj40c=",
    id="wh_685c059ae39c8190af8c71ed1022a24d",
    timestamp="1750861210",
    signature="v1,gUAg4R2hWouRZqRQG4uJypNS8YK885G838+EHb4nKBY=",
    body='{"id": "evt_685c059ae3a481909bdc86819b066fb6", "object": "event", "created_at": '
    '1750861210, "type": "response.completed", "data": {"id": "resp_123"}}',
    now=1750861210,
)

ACCEPTED = {
    "published": PUBLISHED,
    "published, OpenAI": OPENAI,
    "a published list whose first item is no signature": replace(
        OPENAI, signature=f"v1,invalid_signature {OPENAI.signature}"
    ),
    "the secret's padding is left off": Case(
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        signature="v1,LVOXivKoo4FWasi/IaHvzhE/u+7/cu2AME+zS/nXqzk=",
    ),
    "exactly as old as allowed": Case(now=1614265630),
    "exactly as far ahead as allowed": Case(now=1614265030),
    "two spaces in the list": Case(signature=f"{BAD}  {GOOD}"),
    "a malformed item before a good one": Case(signature=f"{BAD},extra {GOOD}"),
    "an unknown version beside a good one": Case(signature=f"v2,AAAA {GOOD} v1a,AAAA"),
}

REFUSED = {
    "another last character": (Case(signature=GOOD.replace("OE=", "OA=")), Failure.MISMATCH),
    "a second too new": (Case(now=1614265029), Failure.TOO_NEW),
    "a second too old": (Case(now=1614265631), Failure.TOO_OLD),
    "a day old": (Case(now=1614265330 + 86_400), Failure.TOO_OLD),
    "W1: the same JSON in other bytes": (Case(body='{"test":2432232314}'), Failure.MISMATCH),
    "a newline behind the body": (Case(body='{"test": 2432232314}\n'), Failure.MISMATCH),
    "another timestamp": (Case(timestamp="1614265331"), Failure.MISMATCH),
    "another id": (Case(id="msg_other"), Failure.MISMATCH),
    "another secret": (
        Case(secret="whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"),
        Failure.MISMATCH,
    ),
    "no good one in the list": (
        Case(signature=f"{BAD} v2,{BAD.removeprefix('v1,')}"),
        Failure.MISMATCH,
    ),
    "the right bytes under an unknown version": (
        Case(signature=GOOD.replace("v1", "v2")),
        Failure.MALFORMED,
    ),
    "no timestamp": (Case(timestamp=None), Failure.MISSING),
    "no signature": (Case(signature=None), Failure.MISSING),
    "no id": (Case(id=None), Failure.MISSING),
    "an empty id": (Case(id=""), Failure.MISSING),
    "a fraction of a second": (Case(timestamp="1614265330.9"), Failure.MALFORMED),
    "milliseconds, rightly signed": (
        Case(
            timestamp="1614265330000",
            signature="v1,rTuMKFUiBNE7gJ41LZxwvD1dtGO0rPk1IamJN9BSq2w=",
        ),
        Failure.MALFORMED,
    ),
    "digits of another script": (Case(timestamp="١٦١٤٢٦٥٣٣٠"), Failure.MALFORMED),
    "a signed number": (Case(timestamp="+1614265330"), Failure.MALFORMED),
    "two signature headers": (
        Case(more={"webhook-signature": [GOOD, BAD]}),
        Failure.MALFORMED,
    ),
    "two ids": (Case(more={"webhook-id": ["a", "b"]}), Failure.MALFORMED),
    "W7: no key": (Case(secret="whsec_"), Failure.NO_KEY),
    "W7: a key that is not base64": (Case(secret="whsec_***"), Failure.NO_KEY),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert isinstance(ACCEPTED[name].judge(), Verified)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    delivery, expected = REFUSED[name]
    assert delivery.judge() is expected


@pytest.mark.parametrize(("minutes", "accepted"), [(4, True), (-4, True), (6, False), (-6, False)])
def test_a_senders_clock_may_be_five_minutes_wrong(minutes: int, accepted: bool) -> None:
    """W5"""
    verified = replace(PUBLISHED, now=PUBLISHED.now + 60 * minutes).judge()
    assert isinstance(verified, Verified) is accepted
    if isinstance(verified, Verified):
        assert verified.age == 60 * minutes


def test_the_key_that_matched_is_named() -> None:
    body, at = b'{"a": 1.0, "b": "\xc3\xa9"}', 1_700_000_000
    keys = [Key("current", b"one"), Key("previous", b"two")]
    for secret, version in ((b"one", "current"), (b"two", "previous")):
        verified = standard_webhooks(body, _signed(body, secret, at), keys, 300, at)
        assert verified == Verified(version, 0)


def test_both_keys_of_a_rotation_may_sign() -> None:
    body, at = b"{}", 1_700_000_000
    one, two = (_signed(body, secret, at) for secret in (b"one", b"two"))
    both = {**one, "webhook-signature": [f"{two[SIGNATURE][0]} {one[SIGNATURE][0]}"]}
    for secret in (b"one", b"two"):
        assert isinstance(
            standard_webhooks(body, both, [Key("current", secret)], 300, at), Verified
        )


def test_a_list_without_end_is_not_read_to_its_end() -> None:
    headers = _signed(b"{}", b"one", 1)
    headers[SIGNATURE] = [" ".join(["v1,AAAA"] * 20 + headers[SIGNATURE])]
    assert standard_webhooks(b"{}", headers, [Key("current", b"one")], 300, 1) is Failure.MALFORMED
    headers[SIGNATURE] = ["v1," * 4000]
    assert standard_webhooks(b"{}", headers, [Key("current", b"one")], 300, 1) is Failure.MALFORMED


SIGNATURE = "webhook-signature"


def _signed(body: bytes, secret: bytes, at: int, event: str = "msg_1") -> dict[str, list[str]]:
    content = f"{event}.{at}.".encode("latin-1") + body
    digest = base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode()
    return {"webhook-id": [event], "webhook-timestamp": [str(at)], SIGNATURE: [f"v1,{digest}"]}


header_text = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=80
)
header_values = st.lists(header_text, max_size=2)


@given(
    headers=st.dictionaries(
        st.sampled_from(["webhook-id", "webhook-timestamp", SIGNATURE]), header_values
    ),
    body=st.binary(max_size=64),
    now=st.floats(min_value=0, max_value=4e9),
)
def test_any_headers_are_judged_and_none_is_accepted_unsigned(
    headers: dict[str, list[str]], body: bytes, now: float
) -> None:
    assert isinstance(
        standard_webhooks(body, headers, [Key("current", b"secret")], 300, now), Failure
    )


@given(
    secret=st.binary(min_size=1, max_size=64),
    event=st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=40),
    body=st.text(max_size=200),
    noise=st.lists(st.sampled_from(["", "v1,", "v1,AAAA", "v2,AAAA", "v1", ",", "x"]), max_size=5),
    place=st.integers(0, 5),
)
def test_what_the_schemes_library_signs_is_accepted_amid_noise(
    secret: bytes, event: str, body: str, noise: list[str], place: int
) -> None:
    at = 1_700_000_000
    signature = Webhook(secret).sign(event, datetime.fromtimestamp(at, tz=UTC), body)
    items = [*noise[:place], signature, *noise[place:]]
    headers = {
        "webhook-id": [event],
        "webhook-timestamp": [str(at)],
        SIGNATURE: [" ".join(items)],
    }
    verified = standard_webhooks(body.encode(), headers, [Key("current", secret)], 300, at)
    assert isinstance(verified, Verified)


@settings(max_examples=50)
@given(
    flip=st.integers(0, 10_000),
    secret=st.binary(min_size=1, max_size=32),
    body=st.text(min_size=1, max_size=60),
)
def test_one_changed_bit_of_body_or_signature_is_refused_by_us_and_by_the_library(
    flip: int, secret: bytes, body: str
) -> None:
    at = int(time.time())
    raw = bytearray(body.encode())
    headers = _signed(bytes(raw), secret, at)
    raw[flip % len(raw)] ^= 1 << (flip % 7)
    assert standard_webhooks(bytes(raw), headers, [Key("k", secret)], 300, at) is Failure.MISMATCH
    plain = {name: values[0] for name, values in headers.items()}
    with pytest.raises((WebhookVerificationError, UnicodeDecodeError)):
        Webhook(secret).verify(bytes(raw), plain, json_parse=False)


@given(st.binary(min_size=1, max_size=64))
def test_a_secret_survives_its_encoding_with_or_without_padding(secret: bytes) -> None:
    text = base64.b64encode(secret).decode()
    for form in (f"whsec_{text}", f"whsec_{text.rstrip('=')}", text):
        assert base64_secret(form) == secret
