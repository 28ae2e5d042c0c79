"""One encoder: the live message and the replayed event are the same bytes."""

from __future__ import annotations

import json
import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from edge.gateway import frames

PROJECT = UUID("0190c1aa-0000-7000-8000-000000000001")
TASK = UUID("0190c1aa-0000-7000-8000-00000000000a")


def payload(**more: Any) -> dict[str, Any]:
    return {
        "task_id": str(TASK),
        "task_version": 18,
        "status": "running",
        "stage": "running",
        "progress": 42,
        "asset_id": None,
        "error": None,
        "updated_at": "2026-06-24T03:10:15.127Z",
        **more,
    }


def body(**more: Any) -> dict[str, Any]:
    return {
        "event_id": 9823417,
        "prev_event_id": 9823390,
        "event_type": "task.status.changed",
        "aggregate_id": str(TASK),
        "aggregate_version": 18,
        "project_id": str(PROJECT),
        "public_payload": payload(),
        **more,
    }


def test_a_message_is_a_header_and_a_frame_without_its_end() -> None:
    message = frames.encode(body())
    header = frames.decode_header(message)
    assert header == (PROJECT.bytes, 9823417, 9823390, 18, TASK.bytes, 0)
    event = frames.decode(message)
    assert event.closed(9823390) == (
        b"id: 9823417\nevent: task.status\n"
        b'data: {"task_id":"%b","task_version":18,"status":"running","stage":"running",'
        b'"progress":42,"asset_id":null,"error":null,'
        b'"updated_at":"2026-06-24T03:10:15.127Z","prev":9823390}\n\n' % str(TASK).encode()
    )


def test_progress_is_marked_in_the_header() -> None:
    event = frames.decode(frames.encode(body(event_type="task.progress.changed")))
    assert event.progress_only


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    extra=st.dictionaries(
        st.text(max_size=12).filter(lambda key: key != "prev"), json_values, max_size=5
    ),
    seed=st.integers(),
)
def test_live_and_replay_give_the_same_bytes(extra: dict[str, Any], seed: int) -> None:
    """G19, A7: whatever a payload holds and however a broker orders its keys."""
    public = payload(**extra)
    shuffled = list(public.items())
    random.Random(seed).shuffle(shuffled)
    live = frames.decode(frames.encode(body(public_payload=dict(shuffled))))
    replayed = frames.frame(
        frames.StoredEvent(
            9823417, 9823390, TASK, 18, "task.status.changed", json.loads(json.dumps(public))
        )
    )
    assert live == replayed
    whole = live.closed(7)
    assert b"\0" not in whole and b"\r" not in whole
    lines = whole.split(b"\n")
    assert [line.partition(b":")[0] for line in lines] == [b"id", b"event", b"data", b"", b""]
    data = json.loads(lines[2].removeprefix(b"data: "))
    assert data == {**public, "task_id": str(TASK), "task_version": 18, "prev": 7}
    assert json.loads(live.message(7)) == {
        "type": "task.status",
        "event_id": 9823417,
        "task_id": str(TASK),
        "task_version": 18,
        "payload": {key: data[key] for key in data.keys() - {"task_id", "task_version", "prev"}},
        "prev": 7,
    }


def test_a_header_that_is_not_its_frames_is_refused() -> None:
    """What a WebSocket is told is cut by the header, so the two must be of one event."""
    message = bytearray(frames.encode(body()))
    for place in (16 + 7, 32 + 7, 40 + 15):  # the event's id, the task's version, the task
        forged = message.copy()
        forged[place] ^= 1
        with pytest.raises(frames.BadFrame):
            frames.decode(bytes(forged))


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_id": "9823417"},
        {"event_id": True},
        {"event_id": 2**53},
        {"prev_event_id": 9823417},
        {"prev_event_id": -1},
        {"aggregate_version": 0},
        {"aggregate_id": "not a uuid"},
        {"project_id": None},
        {"public_payload": None},
        {"public_payload": {"status": "x" * frames.MAX_MESSAGE}},
        {"public_payload": {"status": object()}},
        {"public_payload": {1: 2, "a": 3}},
    ],
)
def test_a_body_that_is_no_event_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(frames.BadFrame):
        frames.encode(body(**wrong))


def test_a_body_that_lacks_a_field_is_refused() -> None:
    for key in body():
        with pytest.raises(frames.BadFrame):
            frames.encode({name: value for name, value in body().items() if name != key})


def test_bytes_that_encode_cannot_have_made_are_refused() -> None:
    message = frames.encode(body())
    forged = [
        b"",
        message[:40],
        message[:57],
        message + b"x" * frames.MAX_MESSAGE,
        message + b"1}\n\nid: 9\ndata: forged\n\ndata: {",
        message[:57] + b"retry: 1\n" + message[57:],
        message.replace(b"id: 9823417", b"id: 9823418"),
        message.replace(b"running", b"run\ring"),
        message.replace(b"running", b"run\0ing"),
    ]
    for bad in forged:
        with pytest.raises(frames.BadFrame):
            frames.decode(bad)
