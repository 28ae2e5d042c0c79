"""What an answer is called, for any bytes and any headers."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from email.utils import format_datetime

import orjson
import pytest
from hypothesis import given, strategies as st

from edge.intake import outcomes
from edge.intake.outcomes import TooLarge, Undecodable


@given(st.text(max_size=60))
def test_any_retry_after_is_a_bounded_wait_or_nothing(value: str) -> None:
    wait = outcomes.retry_after_seconds(value, 1_700_000_000.0)
    assert wait is None or 0 <= wait <= 86_400


@given(st.integers(-100_000, 100_000))
def test_a_date_means_the_time_until_then(seconds: int) -> None:
    now = 1_700_000_000
    date = format_datetime(datetime.fromtimestamp(now + seconds, tz=UTC), usegmt=True)
    assert outcomes.retry_after_seconds(date, now) == min(86_400, max(0, seconds))


@given(st.integers(100, 599), st.binary(max_size=2000))
def test_any_answer_becomes_an_outcome_that_is_json(status: int, raw: bytes) -> None:
    outcome = outcomes.response(status, raw, None, 0.0)
    assert outcome["http_status"] == status
    assert outcome["kind"] in ("response", "malformed")
    assert orjson.dumps(outcome)


@given(st.binary(max_size=3000))
def test_a_sample_fits_postgresql(raw: bytes) -> None:
    text = outcomes.sample(raw)
    assert len(text) <= 500
    assert "\0" not in text
    text.encode()


@given(st.binary(max_size=5000), st.integers(1, 700))
def test_unpacking_piece_by_piece_is_whole_or_too_large(plain: bytes, size: int) -> None:
    packed = gzip.compress(plain)
    unpack = outcomes.unpacker("gzip", 2000)
    got = b""
    try:
        for place in range(0, len(packed), size):
            got += unpack(packed[place : place + size])
    except TooLarge:
        assert len(plain) > 2000
    else:
        assert got == plain[: len(got)]
        assert len(plain) <= 2000 and got == plain


def test_what_is_not_packed_as_it_says_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        outcomes.unpacker("br", 10)
    with pytest.raises(Undecodable):
        outcomes.unpacker("gzip", 10)(b"plain text")
