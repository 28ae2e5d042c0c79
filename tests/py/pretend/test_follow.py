"""The run's own SSE client: frames from bytes, and an account of what was left out."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from edge.pretend.follow import Account, Frame, Parser

STREAM = (
    b": ping 1\n\n"
    b'event: ready\nid: 7\nretry: 1000\ndata: {"cursor":7}\n\n'
    b"id: 9\r\nevent: task.status\r\ndata: a\r\ndata: b\r\n\r\n"
    b"id: 10\n\n"
    b"data: unfinished"
)
FRAMES = [
    Frame("ready", "7", '{"cursor":7}'),
    Frame("task.status", "9", "a\nb"),
    Frame("message", "10", ""),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_frames_do_not_depend_on_how_the_bytes_are_cut(cuts: list[int]) -> None:
    parser = Parser()
    edges = [0, *sorted(cuts), len(STREAM)]
    parts = [STREAM[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert [frame for part in parts for frame in parser.feed(part)] == FRAMES


def test_a_line_without_end_is_refused() -> None:
    parser = Parser()
    with pytest.raises(ValueError, match="too long"):
        parser.feed(b"data: " + b"x" * 70_000)


def event(event_id: int, prev: int, version: int, task: str = "t", **fields: Any) -> Frame:
    payload = {"task_id": task, "task_version": version, "prev": prev, "status": "running"}
    return Frame("task.status", str(event_id), orjson.dumps(payload | fields).decode())


def ready(cursor: int) -> Frame:
    return Frame("ready", str(cursor), f'{{"cursor":{cursor}}}')


def account(*frames: Frame) -> Account:
    account = Account()
    for frame in frames:
        account.take(frame, 100.0)
    return account


def test_an_unbroken_chain_has_no_breaks() -> None:
    seen = account(ready(5), event(6, 5, 1), event(8, 6, 2), ready(8), event(9, 8, 3))
    assert seen.breaks == []
    assert (seen.first_cursor, seen.cursor) == (5, 9)
    assert seen.versions == {"t": {1, 2, 3}}


def test_a_repeat_is_counted_and_otherwise_ignored() -> None:
    seen = account(ready(5), event(6, 5, 1), event(6, 5, 1))
    assert (seen.repeats, seen.breaks, len(seen.events)) == (1, [], 1)


@pytest.mark.parametrize(
    "frames",
    [
        (ready(5), event(8, 6, 1)),
        (ready(5), event(6, 5, 1), ready(8)),
        (ready(5), event(6, 5, 2), event(7, 6, 1)),
        (ready(5), Frame("reset", "9", '{"reason":"pruned","cursor":9}')),
    ],
    ids=["hole", "reconnected elsewhere", "version falls", "reset"],
)
def test_whatever_could_hide_an_event_is_a_break(frames: tuple[Frame, ...]) -> None:
    assert len(account(*frames).breaks) == 1


def test_latency_is_receipt_minus_the_events_own_time() -> None:
    seen = account(ready(5), event(6, 5, 1, updated_at="1970-01-01T00:01:39.5Z"))
    assert seen.events[6].latency_s == pytest.approx(0.5)
