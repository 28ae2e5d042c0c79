"""The feed against a gateway that behaves: snapshot, stream, commands."""

from __future__ import annotations

from tests.py.browser.conftest import FeedPage
from tests.py.browser.fake_gateway import PROJECT, Answer, FakeGateway


async def test_a_snapshot_then_events(feed: FeedPage, gateway: FakeGateway) -> None:
    task = gateway.add("one")
    gateway.add("two")
    await feed.start()
    await feed.complete()
    gateway.change(task, status="running", progress=40)
    await feed.complete()
    assert await feed.get("feed.counters.breaks") == 0
    assert await feed.get("seen.states") == ["connecting", "live"]


async def test_the_stream_is_asked_for_by_header(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    await feed.start()
    await feed.live()
    [request] = gateway.asked("/events")
    assert request.headers["last-event-id"] == str(gateway.head)
    assert request.headers["accept"] == "text/event-stream"
    assert request.query == {}
    assert request.path == f"/projects/{PROJECT}/events"


async def test_a_new_task_gets_its_details(feed: FeedPage, gateway: FakeGateway) -> None:
    await feed.start()
    await feed.live()
    gateway.add("born on the stream")
    await feed.complete()


async def test_details_that_are_refused_are_asked_for_again(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    await feed.start()
    await feed.live()
    gateway.answers["tasks"].extend([Answer.problem(503), Answer.problem(503)])
    gateway.add("asked for three times")
    await feed.complete()
    assert len([request for request in gateway.requests if "/tasks/" in request.path]) == 3


async def test_listeners_may_use_the_feed_at_once(feed: FeedPage, gateway: FakeGateway) -> None:
    await feed.start("share: false,")
    await feed.browser.run(
        "const other = module.connect({"
        "  project: given[0], share: false,"
        "  onStatus: () => { window.early ??= other.status.state; },"
        "});",
        PROJECT,
    )
    await feed.until("window.early === 'connecting'")
