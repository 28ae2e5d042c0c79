"""The feed against servers that refuse, vanish and come back, and tabs that sleep."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from tests.py.browser.conftest import QUICK, FeedPage
from tests.py.browser.fake_gateway import Answer, FakeGateway, Stream
from tests.py.support.waiting import eventually_async


async def test_retry_after_is_waited_for(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    gateway.answers["events"].append(Answer.problem(503, retry_after="1"))
    gateway.answers["events"].append(Answer.problem(429, retry_after="1"))
    await feed.start()
    # Neither a page that comes into view nor a network that returns may cut it short.
    await feed.until("feed.status.problem?.status === 503")
    await feed.browser.run(
        "dispatchEvent(new Event('online')); dispatchEvent(new Event('pageshow'))"
    )
    await feed.complete()
    waits = [after.at - before.at for before, after in pairwise(gateway.asked("/events"))]
    assert len(waits) == 2
    assert all(1.0 <= wait < 3.5 for wait in waits)


async def test_three_failures_interrupt_and_snapshots_go_on(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    task = gateway.add()
    gateway.always["events"] = Answer.problem(502, "bad gateway")
    await feed.start()
    await feed.until("feed.status.state === 'interrupted'")
    assert not await feed.get("feed.proven")
    gateway.change(task, status="ready", asset_id="ast_4")
    await feed.until("feed.tasks[0].status === 'ready'")
    polls = len(gateway.asked("/tasks"))
    await eventually_async(lambda: len(gateway.asked("/tasks")) >= polls + 2)
    age = await feed.get("Date.now() - feed.status.asOf")
    assert 0 <= age < 2000
    assert await feed.get("feed.status.problem.detail") == "bad gateway"
    gateway.always.clear()
    await feed.complete()
    polls = len(gateway.asked("/tasks"))
    await feed.outlast(QUICK["pollMax"])
    assert len(gateway.asked("/tasks")) == polls
    assert await feed.get("feed.status.problem") is None


async def test_a_refused_token_is_renewed_once(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    gateway.answers["events"].append(Answer.problem(401))
    await feed.start(
        "token: (request) => { (window.asked ??= []).push(request); return `t${asked.length}`; },"
    )
    await feed.complete()
    asked = await feed.get("asked")
    assert asked == [
        {"purpose": "api", "renew": False},
        {"purpose": "stream", "renew": False},
        {"purpose": "stream", "renew": True},
    ]
    first, second = gateway.asked("/events")
    assert first.headers["authorization"] == "Bearer t2"
    assert second.headers["authorization"] == "Bearer t3"
    assert second.at - first.at < 1.0
    assert await feed.get("feed.status.failures") == 0


async def test_a_token_that_never_comes_is_a_failure(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    await feed.start(
        "token: () => window.late ? 't' : new Promise(() => {}),",
        request=200,
    )
    await feed.until("feed.status.failures >= 3")
    await feed.browser.run("window.late = true")
    await feed.complete()


async def test_signed_out_is_told_and_heals(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    gateway.always["tasks"] = gateway.always["events"] = Answer.problem(401, "who are you?")
    await feed.start("token: () => 'old',")
    await feed.until("feed.status.state === 'unauthorized'")
    assert await feed.get("feed.status.problem.detail") == "who are you?"
    # One renewal for each try, not a storm.
    assert len(gateway.asked("/tasks")) <= 6
    gateway.always.clear()
    await feed.complete()


async def test_someone_elses_project(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.always["tasks"] = Answer.problem(404, "There is no such thing", "not_found")
    await feed.start()
    await feed.until("feed.status.state === 'forbidden'")
    assert await feed.get("[feed.status.problem.code, feed.status.loaded]") == ["not_found", False]


async def test_the_renew_signal(feed: FeedPage, gateway: FakeGateway) -> None:
    """A2"""
    gateway.add()

    async def expire(stream: Stream) -> None:
        await stream.ready()
        await stream.write(b'event: renew\ndata: {"reason":"expired"}\n\n')

    gateway.scripts.append(expire)
    await feed.start(
        "token: (request) => { (window.asked ??= []).push(request.renew); return 't'; },"
    )
    await eventually_async(lambda: len(gateway.asked("/events")) == 2)
    await feed.complete()
    assert await feed.get("asked") == [False, False, True]
    assert await feed.get("feed.status.failures") == 0


async def test_no_content_is_the_end(feed: FeedPage, gateway: FakeGateway) -> None:
    """B8"""
    gateway.add()
    gateway.answers["events"].append(Answer(204))
    await feed.start()
    await feed.until("feed.status.state === 'ended'")
    asked = gateway.bothered
    await feed.outlast(QUICK["backoffCap"])
    assert gateway.bothered == asked
    await feed.browser.run("feed.start()")
    await feed.complete()


async def test_close_stays_closed_while_a_reconnect_is_pending(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    """B11"""
    gateway.always["events"] = Answer.problem(503)
    await feed.start(backoff=300)
    await feed.until("feed.status.failures > 0")
    await feed.browser.run("feed.close()")
    asked = gateway.bothered
    gateway.always.clear()
    await feed.outlast(QUICK["backoffCap"])
    assert gateway.bothered == asked
    states = await feed.get("seen.states")
    assert states[-1] == "closed"


async def test_close_while_connecting_and_start_again(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    await feed.start()
    await feed.browser.run("feed.close(); feed.start(); feed.close(); feed.close()")
    await feed.outlast(QUICK["backoffCap"])
    assert await feed.get("feed.status.state") == "closed"
    assert not gateway.streams
    await feed.browser.run("feed.start()")
    await feed.complete()
    assert len(gateway.streams) == 1


async def test_a_server_killed_and_restarted(feed: FeedPage, gateway: FakeGateway) -> None:
    task = gateway.add()
    await feed.start()
    await feed.complete()
    await gateway.stop()
    await feed.until("!feed.proven")
    for progress in (20, 40, 60):
        gateway.change(task, status="running", progress=progress)
    gateway.add("born while nobody listened")
    await feed.until("feed.status.state === 'interrupted'")
    await gateway.listen(gateway.port)
    await feed.complete()


async def test_it_never_gives_up(feed: FeedPage, gateway: FakeGateway) -> None:
    """B13: ten minutes away, at the pace of these tests."""
    gateway.add()
    await feed.start(backoffCap=20)
    await feed.complete()
    await gateway.stop()
    await feed.until("feed.status.failures >= 40", timeout=30)
    await gateway.listen(gateway.port)
    await feed.complete()


async def test_offline_and_online(feed: FeedPage, gateway: FakeGateway) -> None:
    task = gateway.add()
    await feed.start()
    await feed.complete()
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    await feed.browser.devtools("Network.enable")
    await feed.browser.devtools("Network.emulateNetworkConditions", offline=True, **network)
    try:
        for stream in gateway.streams:
            stream.cut()
        gateway.change(task, status="running", progress=50)
        await feed.until("feed.status.failures >= 3")
    finally:
        await feed.browser.devtools("Network.emulateNetworkConditions", offline=False, **network)
    await feed.complete()


async def test_a_network_that_changed_must_show_life_soon(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    gateway.add()

    async def dead(stream: Stream) -> None:
        await stream.ready()
        await asyncio.Event().wait()

    gateway.scripts.append(dead)
    await feed.start(silence=60_000, suspect=300)
    await feed.live()
    await feed.browser.run("dispatchEvent(new Event('offline'))")
    await eventually_async(lambda: len(gateway.asked("/events")) == 2)
    await feed.complete()


async def test_a_network_that_changed_and_lives_is_kept(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    gateway.add()
    await feed.start(suspect=500)
    await feed.live()
    await feed.browser.run("dispatchEvent(new Event('online'))")
    await feed.outlast(500 + 2 * QUICK["watch"])
    assert len(gateway.asked("/events")) == 1
    assert await feed.get("feed.proven")


async def test_a_hidden_page_does_not_hammer(feed: FeedPage, gateway: FakeGateway) -> None:
    """B16"""
    gateway.add()
    gateway.always["events"] = Answer.problem(500)
    await feed.start(hiddenFloor=60_000)
    await feed.browser.run(
        "Object.defineProperty(document, 'visibilityState', { get: () => window.eye ?? 'hidden' });"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    await feed.until("feed.status.failures >= 3")
    # What was set before it was hidden may still fire, and no more after that.
    await feed.outlast(QUICK["pollMax"])
    asked = gateway.bothered
    await feed.outlast(QUICK["pollMax"])
    assert gateway.bothered == asked
    gateway.always.clear()
    await feed.browser.run(
        "window.eye = 'visible'; document.dispatchEvent(new Event('visibilitychange'));"
    )
    await feed.complete()


async def test_a_frozen_tab_is_true_again_when_it_wakes(
    feed: FeedPage, gateway: FakeGateway
) -> None:
    task = gateway.add()
    await feed.start()
    await feed.complete()
    await feed.browser.devtools("Page.setWebLifecycleState", state="frozen")
    gateway.change(task, status="running", progress=30)
    for stream in gateway.streams:
        stream.cut()
    gateway.change(task, status="ready", asset_id="ast_5")
    await feed.browser.devtools("Page.setWebLifecycleState", state="active")
    await feed.complete()


async def test_back_from_the_back_forward_cache(feed: FeedPage, gateway: FakeGateway) -> None:
    task = gateway.add()
    await feed.start()
    await feed.complete()
    await feed.browser.run(
        "dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))"
    )
    await eventually_async(lambda: not gateway.streams)
    gateway.change(task, status="queued")
    await feed.outlast(QUICK["backoffCap"])
    assert len(gateway.asked("/events")) == 1
    await feed.browser.run(
        "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
    )
    await feed.complete()


async def test_a_malformed_cursor_is_given_up(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    gateway.answers["events"].append(Answer.problem(400, code="bad_cursor"))
    await feed.start()
    await feed.complete()
    assert len(gateway.asked("/tasks")) == 2


async def test_a_lost_answer_makes_no_second_task(feed: FeedPage, gateway: FakeGateway) -> None:
    await feed.start()
    await feed.live()
    gateway.answers["post"].append(Answer.problem(503, retry_after="0"))
    created = await feed.browser.run(
        "return feed.createTask({ provider: 'p', model: 'm', input: { prompt: 'once' } });"
    )
    assert created["prompt"] == "once"
    first, second = [request for request in gateway.requests if request.method == "POST"]
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert len(gateway.tasks) == 1
    await feed.complete()


async def test_a_refused_command_tells_why(feed: FeedPage, gateway: FakeGateway) -> None:
    task = gateway.add(status="ready")
    await feed.start()
    await feed.live()
    told = await feed.browser.run(
        "return feed.cancelTask(given[0]).catch(({ name, status, code, message, traceId }) => "
        "({ name, status, code, message, traceId }));",
        task,
    )
    assert told == {
        "name": "ApiProblem",
        "status": 409,
        "code": "already_ended",
        "message": "This job has ended already.",
        "traceId": "trc_test",
    }


async def test_refresh_does_not_wait(feed: FeedPage, gateway: FakeGateway) -> None:
    gateway.add()
    gateway.answers["events"].append(Answer.problem(503, retry_after="60"))
    await feed.start()
    await feed.until("feed.status.failures === 1")
    await feed.browser.run("feed.refresh()")
    await feed.complete()
