"""
The parser of event streams in Chromium, against the rules of the HTML standard.

Whatever the bytes and wherever the chunks end, it gives what a plain reading of the standard
gives, which `read` below spells out over the whole text at once.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.py.browser.chromium import Browser
from tests.py.browser.fake_gateway import STATIC

SOURCE = STATIC / "aivedio" / "event_stream.js"
PARSE = """
const { EventStreamParser } = window.stream;
const bytes = Uint8Array.from(atob(given[0]), (letter) => letter.charCodeAt(0));
const parser = new EventStreamParser();
const events = [];
let from = 0;
for (const to of [...given[1], bytes.length]) {
  events.push(...parser.push(bytes.subarray(from, to)));
  from = to;
}
return { events, id: parser.lastEventId, retry: parser.retry };
"""


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Browser:
    chromium.driver.get("about:blank")
    chromium.run_now(
        "const blob = new Blob([given[0]], { type: 'text/javascript' });"
        "window.stream = await import(URL.createObjectURL(blob));",
        SOURCE.read_text(),
    )
    return chromium


def parse(page: Browser, data: bytes, cuts: list[int]) -> Any:
    inside = sorted({cut for cut in cuts if 0 <= cut <= len(data)})
    return page.run_now(PARSE, base64.b64encode(data).decode(), inside)


def read(data: bytes) -> Any:
    """Read a whole event stream, paragraph 9.2.6 of the standard line by line."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    events: list[dict[str, str]] = []
    last_id, retry = "", None
    kind, body = "", ""
    for line in re.split(r"\r\n|\r|\n", text)[:-1]:
        if line == "":
            if body:
                events.append({"type": kind or "message", "data": body[:-1], "id": last_id})
            kind, body = "", ""
            continue
        name, colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if colon and not name:
            continue
        if name == "data":
            body += value + "\n"
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last_id = value
        elif name == "retry" and re.fullmatch("[0-9]+", value):
            retry = int(value)
    return {"events": events, "id": last_id, "retry": retry}


words = st.text(alphabet=st.sampled_from("ab7 :\0é→🦊\ufeff"), max_size=6)
fields = st.sampled_from(["data", "event", "id", "retry", "", "datum", "Data", " data"])
lines = st.one_of(
    st.builds("{}: {}".format, fields, words),
    st.builds("{}:{}".format, fields, words),
    st.builds("retry: {}".format, st.integers(0, 9999)),
    fields,
    words,
    st.just(""),
)
ends = st.sampled_from(["\n", "\r", "\r\n"])
streams = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "\ufeff"]),
    st.lists(st.builds("{}{}".format, lines, ends), max_size=14).map("".join),
    words,
).map(str.encode)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=streams, cuts=st.lists(st.integers(0, 120), max_size=40))
def test_any_chunks_give_the_same_events(page: Browser, data: bytes, cuts: list[int]) -> None:
    assert parse(page, data, cuts) == read(data)


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\ndata: b\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data\n\ndata\ndata\n\n", ["", "\n"]),
        (b"data:test\n\ndata: test\n\n", ["test", "test"]),
        (b": ping 1\n\ndata: a\r\r", ["a"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    ],
)
def test_the_standards_examples(page: Browser, data: bytes, events: list[str]) -> None:
    every_byte = list(range(len(data)))
    for cuts in ([], every_byte):
        answer = parse(page, data, cuts)
        assert [event["data"] for event in answer["events"]] == events
    assert read(data) == answer


def test_an_id_with_nul_is_ignored_and_an_id_without_data_counts(page: Browser) -> None:
    answer = parse(page, b"id: 7\n\nid: 8\x009\ndata: a\n\n", [])
    assert answer["events"] == [{"type": "message", "data": "a", "id": "7"}]


def test_an_endless_line_is_refused(page: Browser) -> None:
    with pytest.raises(AssertionError, match="too large"):
        parse(page, b"data: " + b"x" * 300_000, [])


def test_a_character_may_be_split(page: Browser) -> None:
    fox = "data: 🦊\n\n".encode()
    answer = parse(page, fox, list(range(len(fox))))
    assert answer["events"][0]["data"] == "🦊"
