"""The feed against streams that break, repeat, leave out, restart and fall silent."""

from __future__ import annotations

import asyncio
import json

from tests.py.browser.conftest import FeedPage
from tests.py.browser.fake_gateway import PROJECT, Answer, FakeGateway, Stream, faithful
from tests.py.support.waiting import eventually_async


async def test_a_frame_cut_in_the_middle_is_not_taken(feed: FeedPage, gateway: FakeGateway) -> None:
    task = gateway.add()

    async def cut(stream: Stream) -> None:
        await stream.ready()
        event = gateway.change(task, status="running", progress=70)
        frame = stream.frame(event)
        # Complete but for the blank line.
        await stream.write(frame[:-1])
        await stream.ping()
        await asyncio.sleep(0.1)
        stream.cut()

    gateway.scripts.append(cut)
    await feed.start()
    await feed.complete()
    first, second = gateway.asked("/events")
    assert first.headers["last-event-id"] == second.headers["last-event-id"] == "3"
    changes = await feed.get("seen.changes.filter((change) => change.source === 'event').length")
    assert changes == 1


async def test_bytes_may_come_one_by_one(feed: FeedPage, gateway: FakeGateway) -> None:
    task = gateway.add("é🦊")

    async def drip(stream: Stream) -> None:
        await stream.ready()
        event = gateway.change(task, status="running", progress=5)
        frame = stream.frame(event).replace(b"\n", b"\r\n")
        for place in range(len(frame)):
            await stream.write(frame[place : place + 1])
            await asyncio.sleep(0)
        stream.sent = event.id
        await stream.follow()

    gateway.scripts.append(drip)
    await feed.start()
    await feed.complete()


async def test_a_server_without_its_database_proves_nothing(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    """It is connected and pings, but may miss what happens: the banner says so until it is back."""
    task = gateway.add()
    back = asyncio.Event()

    async def blind(stream: Stream) -> None:
        await stream.ready()
        await stream.database("away")
        await stream.event(gateway.change(task, status="running"))
        await back.wait()
        await stream.database("back")
        await stream.follow()

    gateway.scripts.append(blind)
    await feed.start()
    await feed.until("feed.counters.events === 1")
    await feed.until("feed.status.state === 'interrupted'")
    assert not await feed.get("feed.proven")
    assert await feed.get("feed.tasks[0].status") == "running"
    gateway.change(task, status="ready", asset_id="ast_1")
    back.set()
    await feed.complete()
    assert len(gateway.asked("/events")) == 1


async def test_a_repeat_is_one_visible_change(feed: FeedPage, gateway: FakeGateway) -> None:
    """B17"""
    task = gateway.add()

    async def repeat(stream: Stream) -> None:
        await stream.ready()
        event = gateway.change(task, status="queued")
        for _ in range(3):
            await stream.event(event, prev=3)
        await stream.follow()

    gateway.scripts.append(repeat)
    await feed.start()
    await feed.complete()
    assert await feed.get("feed.counters.repeats") == 2
    assert await feed.get("feed.counters.breaks") == 0
    assert await feed.get("seen.changes.length") == 2


async def test_a_hole_is_mended_by_a_snapshot(feed: FeedPage, gateway: FakeGateway) -> None:
    """B14"""
    task, other = gateway.add(), gateway.add()

    async def lose(stream: Stream) -> None:
        await stream.ready()
        lost = gateway.change(task, status="ready", asset_id="ast_1")
        stream.sent = lost.id
        await stream.event(gateway.change(other, status="queued"))
        await stream.follow()

    gateway.scripts.append(lose)
    await feed.start()
    await feed.complete()
    assert await feed.get("feed.counters.breaks") == 1
    assert "syncing" in await feed.get("seen.states")
    assert len(gateway.asked("/events")) == 1


async def test_after_a_reset_what_came_meanwhile_is_kept(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    task = gateway.add()
    seen_dirty = asyncio.Event()

    async def reset(stream: Stream) -> None:
        await stream.ready()
        await stream.reset()
        await stream.event(gateway.change(task, status="running", progress=10))
        await seen_dirty.wait()
        await stream.follow()

    gateway.scripts.append(reset)
    await feed.start(resetJitter=600)
    await feed.until("feed.status.state === 'syncing'")
    assert not await feed.get("feed.proven")
    seen_dirty.set()
    gateway.change(task, status="running", progress=20)
    await feed.complete()
    assert await feed.get("feed.counters.resets") == 1
    assert len(gateway.asked("/events")) == 1


async def test_a_snapshot_from_before_the_reset_is_not_taken(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    """C26"""
    task = gateway.add()
    old = Answer.json({"tasks": gateway.snapshot(), "last_event_id": gateway.head, "next": None})

    async def reset(stream: Stream) -> None:
        await stream.ready()
        gateway.change(task, status="failed")
        gateway.answers["tasks"].append(old)
        await stream.reset()
        await stream.follow()

    gateway.scripts.append(reset)
    await feed.start()
    await feed.complete()
    assert len(gateway.asked("/tasks")) == 3


async def test_a_restored_database_takes_jobs_away(feed: FeedPage, gateway: FakeGateway) -> None:
    """C11"""
    gateway.add("kept")
    lost = gateway.add("not in the backup")
    for progress in (10, 20, 30):
        gateway.change(lost, status="running", progress=progress)
    await feed.start()
    await feed.complete()
    del gateway.tasks[lost]
    gateway.events[1:] = []
    gateway.head = gateway.events[0].id
    for stream in gateway.streams:
        stream.cut()
    await feed.complete()
    removed = await feed.get("seen.changes.flatMap((change) => change.removed)")
    assert removed == [lost]


async def test_a_pruned_cursor_is_reset(feed: FeedPage, gateway: FakeGateway) -> None:
    """C10"""
    task = gateway.add()
    await feed.start()
    await feed.live()
    await gateway.stop()
    gateway.change(task, status="ready", asset_id="ast_2")
    gateway.change(gateway.add(), status="queued")
    gateway.prune()
    await gateway.listen(gateway.port)
    await feed.complete()
    assert await feed.get("feed.counters.resets") == 1


async def test_a_ready_from_elsewhere_is_a_reset(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()

    async def elsewhere(stream: Stream) -> None:
        await stream.ready(stream.cursor + 40)
        await stream.follow()

    gateway.scripts.append(elsewhere)
    await feed.start()
    await feed.until("feed.counters.resets === 1")


async def test_silence_ends_a_connection_and_a_ping_keeps_it(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    task = gateway.add()

    async def mute(stream: Stream) -> None:
        await stream.ready()
        await asyncio.Event().wait()

    gateway.scripts.append(mute)
    await feed.start(silence=600)
    await feed.live()
    gateway.change(task, status="queued")
    await feed.until("seen.states.includes('reconnecting')")
    await feed.complete()
    opened = len(gateway.asked("/events"))
    assert opened == 2
    # Pings every 0.2 s carry it over twice the time of silence that would end it.
    await feed.outlast(1200)
    assert len(gateway.asked("/events")) == opened
    assert await feed.get("feed.proven")


async def test_a_stream_that_stays_behind_its_snapshot_is_left(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    async def stuck(stream: Stream) -> None:
        await stream.ready()
        for number in range(10):
            gateway.add(f"job {number}")
            await stream.event(gateway.events[-1])
        # The details of so many are read as a snapshot, and that holds one that never comes.
        gateway.add("withheld")
        while True:
            await stream.ping()
            await asyncio.sleep(0.1)

    gateway.scripts.append(stuck)
    await feed.start()
    await feed.until("feed.tasks.length === 11")
    assert not await feed.get("feed.proven")
    await feed.complete()
    assert len(gateway.asked("/events")) == 2
    # One for the start, one for the details, two to see whether the stream comes after.
    assert len(gateway.asked("/tasks")) == 4


async def test_an_event_of_the_chain_need_not_be_of_a_task(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    task = gateway.add()

    async def note(stream: Stream) -> None:
        await stream.ready()
        await stream.write(b'id: 5\nevent: project.note\ndata: {"prev":3}\n\n')
        stream.sent = 5
        gateway.head = 5
        await stream.event(gateway.change(task, status="queued"))
        await stream.follow()

    gateway.scripts.append(note)
    await feed.start()
    await feed.complete()
    assert await feed.get("[feed.counters.events, feed.counters.breaks]") == [2, 0]


async def test_events_of_unknown_kinds_are_passed_over(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    task = gateway.add()

    async def odd(stream: Stream) -> None:
        await stream.ready()
        await stream.write(b"event: weather\ndata: not even json\n\n: comment\n\nid: 9\n\n")
        await stream.event(gateway.change(task, status="queued"))
        await stream.follow()

    gateway.scripts.append(odd)
    await feed.start()
    await feed.complete()
    assert len(gateway.asked("/events")) == 1
    assert await feed.get("feed.counters.breaks") == 0


async def test_nonsense_ends_a_connection(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()

    async def broken(stream: Stream) -> None:
        await stream.ready()
        await stream.write(b"id: 7\nevent: task.status\ndata: {broken\n\n")
        await asyncio.Event().wait()

    async def no_id(stream: Stream) -> None:
        await stream.write(b'event: ready\ndata: {"cursor":"3"}\n\n')
        await asyncio.Event().wait()

    gateway.scripts.extend([broken, no_id])
    await feed.start()
    await feed.complete()
    assert len(gateway.asked("/events")) == 3


async def test_a_page_that_is_no_stream_is_a_failure(feed: FeedPage, gateway: FakeGateway) -> None:
    portal = Answer(200, b"<h1>Welcome to the hotel</h1>", {"content-type": "text/html"})
    gateway.answers["events"].extend([portal, portal])
    gateway.answers["tasks"].append(portal)
    gateway.add()
    await feed.start()
    await feed.complete()


async def test_a_drained_server_names_the_wait(feed: FeedPage, gateway: FakeGateway) -> None:
    """G14"""
    gateway.add()

    async def drained(stream: Stream) -> None:
        await stream.ready()
        await asyncio.sleep(0.4)
        await stream.write(b"retry: 900\n\n")

    gateway.scripts.append(drained)
    await feed.start()
    await eventually_async(lambda: len(gateway.asked("/events")) == 2)
    first, second = gateway.asked("/events")
    assert 1.25 <= second.at - first.at < 2.5
    await feed.complete()
    assert await feed.get("feed.status.failures") == 0


async def test_no_more_than_one_tries_at_a_time_and_it_backs_off(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    """B7"""
    gateway.add()

    async def slam(stream: Stream) -> None:
        await stream.ready()
        stream.cut()

    gateway.scripts.extend([slam] * 8)
    await feed.start(stable=60_000)
    # Between "ready" and the cut a page may well be complete: the ninth try is what to wait for.
    await eventually_async(lambda: len(gateway.asked("/events")) == 9, timeout=30.0)
    await feed.complete()
    assert len(gateway.asked("/events")) == 9
    assert "interrupted" in await feed.get("seen.states")


async def test_pages_are_joined_from_the_smallest_head(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    tasks = [gateway.add(f"job {number}") for number in range(205)]
    before = json.dumps(gateway.snapshot())
    old_head = gateway.head

    async def between(stream: Stream) -> None:
        # What a stream must bring that goes on from the first page, not from the last.
        assert stream.cursor == old_head
        await faithful(stream)

    gateway.scripts.append(between)
    first = [row for row in json.loads(before)][:200]
    page = {"tasks": first, "last_event_id": old_head, "next": first[-1]["id"]}
    gateway.answers["tasks"].append(Answer.json(page))
    gateway.change(tasks[-1], status="running", progress=1)
    gateway.change(tasks[0], status="ready", asset_id="ast_3")
    await feed.start()
    await feed.complete()
    assert [request.query.get("after") for request in gateway.asked("/tasks")] == [
        None,
        first[-1]["id"],
    ]
    assert await feed.get("feed.counters.events") == 2


async def test_many_new_tasks_are_asked_for_at_once(feed: FeedPage, gateway: FakeGateway) -> None:
    await feed.start(detail=300)
    await feed.live()
    for number in range(40):
        gateway.add(f"job {number}")
    await feed.complete()
    single = [request for request in gateway.requests if f"{PROJECT}/tasks/" in request.path]
    assert single == []
