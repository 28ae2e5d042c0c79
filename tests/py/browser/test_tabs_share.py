"""Several tabs of one browser: one connection, a leader that may vanish, and the same truth."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.py.browser.chromium import Browser
from tests.py.browser.conftest import QUICK, FeedPage
from tests.py.browser.fake_gateway import Answer, FakeGateway
from tests.py.support.waiting import eventually_async

EYE = (
    "Object.defineProperty(document, 'visibilityState',"
    " { configurable: true, get: () => window.eye ?? 'visible' });"
)


class Tab(Browser):
    """One tab of a browser, usable as if it were the whole browser."""

    def __init__(self, browser: Browser, handle: str) -> None:
        self.driver = browser.driver
        self.handle = handle

    def run_now(self, script: str, *given: Any) -> Any:
        self.driver.switch_to.window(self.handle)
        return super().run_now(script, *given)

    async def open(self, url: str) -> None:
        def navigate() -> None:
            self.driver.switch_to.window(self.handle)
            self.driver.get(url)

        await asyncio.to_thread(navigate)

    async def devtools(self, command: str, **arguments: Any) -> Any:
        def send() -> Any:
            self.driver.switch_to.window(self.handle)
            return self.driver.execute_cdp_cmd(command, arguments)

        return await asyncio.to_thread(send)

    async def close(self) -> None:
        def end() -> None:
            self.driver.switch_to.window(self.handle)
            self.driver.close()

        await asyncio.to_thread(end)


OpenTab = Callable[..., Awaitable[FeedPage]]


@pytest.fixture
async def tab(browser: Browser, gateway: FakeGateway) -> AsyncIterator[OpenTab]:
    """Return a function that opens a tab which follows the project."""
    first = browser.driver.current_window_handle
    opened: list[str] = []

    async def open_tab(options: str = "", before: str = "", **timing: int) -> FeedPage:
        def make() -> str:
            browser.driver.switch_to.new_window("tab")
            return browser.driver.current_window_handle

        handle = await asyncio.to_thread(make)
        opened.append(handle)
        page = FeedPage(Tab(browser, handle), gateway)
        # A visible tab takes the lead from a hidden one, so which is which must be told.
        # Timers of tabs in the background fire once a second.
        await page.start(
            options, EYE + before, **{"ask": 3000, "suspect": 6000, "silence": 20_000, **timing}
        )
        return page

    yield open_tab
    for handle in opened:
        if handle in browser.driver.window_handles:
            browser.driver.switch_to.window(handle)
            browser.driver.close()
    browser.driver.switch_to.window(first)


async def close(page: FeedPage) -> None:
    assert isinstance(page.browser, Tab)
    await page.browser.close()


async def test_eight_tabs_have_one_connection(tab: OpenTab, gateway: FakeGateway) -> None:
    """B1: over HTTP/1.1 a browser allows six connections to a host."""
    task = gateway.add()
    tabs = [await tab() for _ in range(8)]
    for page in tabs:
        await page.complete()
    assert len(gateway.asked("/events")) == 1
    # Every tab can still call the API, since nothing occupies the connections.
    for number, page in enumerate(tabs):
        await page.browser.run(
            "await feed.createTask({ provider: 'p', model: 'm', input: { prompt: given[0] } });",
            f"from tab {number}",
        )
    gateway.change(task, status="running", progress=50)
    for page in tabs:
        await page.complete()
    assert len(gateway.asked("/events")) == 1
    assert len(gateway.asked("/tasks")) - 8 == 1, "one snapshot for all"


async def test_when_the_leader_closes_another_goes_on(tab: OpenTab, gateway: FakeGateway) -> None:
    """B5"""
    task = gateway.add()
    leader, second, third = [await tab() for _ in range(3)]
    for page in (leader, second, third):
        await page.complete()
    cursor = gateway.change(task, status="queued").id
    await third.complete()
    await close(leader)
    gateway.change(task, status="running", progress=10)
    await second.complete()
    await third.complete()
    _, again = gateway.asked("/events")
    assert again.headers["last-event-id"] == str(cursor), "it resumes where the first one was"
    assert len(gateway.asked("/tasks")) == 1
    await eventually_async(lambda: len(gateway.streams) == 1)


async def test_a_leader_that_is_frozen_lets_go(tab: OpenTab, gateway: FakeGateway) -> None:
    """B4"""
    task = gateway.add()
    leader, second = await tab(), await tab()
    await second.complete()
    await leader.browser.devtools("Page.setWebLifecycleState", state="frozen")
    gateway.change(task, status="queued")
    await second.complete()
    await eventually_async(lambda: len(gateway.streams) == 1)
    await leader.browser.devtools("Page.setWebLifecycleState", state="active")
    gateway.change(task, status="running", progress=10)
    await leader.complete()
    await eventually_async(lambda: len(gateway.streams) == 1)


async def test_a_leader_that_is_frozen_unawares_lets_go_when_asked(
    tab: OpenTab, gateway: FakeGateway
) -> None:
    """B4: it keeps its lock and its socket, and even answers, but sees nothing of the stream."""
    task = gateway.add()
    deaf = "addEventListener('freeze', (event) => event.stopImmediatePropagation(), true);"
    leader = await tab(before=deaf, suspect=3000, ask=1000)
    second = await tab(suspect=3000, ask=1000)
    await second.complete()
    await leader.browser.devtools("Page.setWebLifecycleState", state="frozen")
    await eventually_async(lambda: len(gateway.asked("/events")) == 2, 20)
    gateway.change(task, status="queued")
    await second.complete()
    await leader.browser.devtools("Page.setWebLifecycleState", state="active")
    await leader.complete()
    await eventually_async(lambda: len(gateway.streams) == 1)


async def test_a_leader_that_hangs_is_robbed(tab: OpenTab, gateway: FakeGateway) -> None:
    """B4: and is no leader any longer when it comes to itself."""
    task = gateway.add()
    leader = await tab(suspect=2000, ask=1000)
    second = await tab(suspect=2000, ask=1000)
    await second.complete()
    await leader.browser.run(
        "setTimeout(() => { const end = Date.now() + 7000; while (Date.now() < end); }, 10);"
    )
    await eventually_async(lambda: len(gateway.asked("/events")) == 2, 20)
    gateway.change(task, status="queued")
    await second.complete()
    await leader.complete(20)
    gateway.change(task, status="running", progress=10)
    await leader.complete()
    await second.complete()
    await eventually_async(lambda: len(gateway.streams) == 1)


async def test_a_frozen_follower_catches_up(tab: OpenTab, gateway: FakeGateway) -> None:
    task = gateway.add()
    leader, second = await tab(), await tab()
    await second.complete()
    await second.browser.devtools("Page.setWebLifecycleState", state="frozen")
    for progress in range(1, 90):
        gateway.change(task, status="running", progress=progress)
    await leader.complete()
    await second.browser.devtools("Page.setWebLifecycleState", state="active")
    await second.complete()
    assert len(gateway.asked("/events")) == 1


async def test_a_visible_tab_takes_over_from_a_hidden_one(
    tab: OpenTab, gateway: FakeGateway
) -> None:
    gateway.add()
    leader = await tab()
    second = await tab()
    await second.complete()
    await leader.browser.run(
        "window.eye = 'hidden'; document.dispatchEvent(new Event('visibilitychange'));"
    )
    await eventually_async(lambda: len(gateway.asked("/events")) == 2)
    await second.complete()
    await leader.complete()
    await eventually_async(lambda: len(gateway.streams) == 1)
    # Both hidden: it stays where it is.
    await second.browser.run(
        "window.eye = 'hidden'; document.dispatchEvent(new Event('visibilitychange'));"
    )
    # Whoever would ask for the lead has done so when both have answered to what came after.
    for page in (leader, second):
        await page.outlast(QUICK["ask"])
    assert len(gateway.asked("/events")) == 2


async def test_trouble_shows_in_every_tab(tab: OpenTab, gateway: FakeGateway) -> None:
    task = gateway.add()
    leader, second = await tab(), await tab()
    await second.complete()
    gateway.always["events"] = Answer.problem(503, "restarting")
    for stream in gateway.streams:
        stream.cut()
    await second.until("feed.status.state === 'interrupted'")
    assert not await second.get("feed.proven")
    assert await second.get("feed.status.problem.message") == "restarting"
    assert await second.get("feed.status.problem instanceof module.ApiProblem")
    # The snapshots of the leader reach both.
    gateway.change(task, status="ready", asset_id="ast_1")
    await second.until("feed.tasks[0].status === 'ready'")
    gateway.always.clear()
    await second.browser.run("feed.refresh()")
    await leader.complete()
    await second.complete()


async def test_a_reset_reaches_every_tab(tab: OpenTab, gateway: FakeGateway) -> None:
    kept, lost = gateway.add("kept"), gateway.add("lost by a restore")
    leader, second = await tab(), await tab()
    await second.complete()
    del gateway.tasks[lost]
    gateway.tasks[kept].update(task_version=1, status="created")
    gateway.events[1:] = []
    gateway.head = gateway.events[0].id
    for stream in gateway.streams:
        stream.cut()
    await leader.complete()
    await second.complete()
    assert await second.get("seen.changes.flatMap((change) => change.removed)") == [lost]


async def test_a_tab_may_keep_to_itself(tab: OpenTab, gateway: FakeGateway) -> None:
    gateway.add()
    pages = [await tab("share: false,"), await tab("token: 'mine',"), await tab()]
    for page in pages:
        await page.complete()
    assert len(gateway.asked("/events")) == 3
    for user in ("ann", "ann", "bob"):
        page = await tab(f"token: 'mine', share: '{user}',")
        await page.complete()
    assert len(gateway.asked("/events")) == 5


async def test_a_follower_that_missed_a_word_asks_again(tab: OpenTab, gateway: FakeGateway) -> None:
    task = gateway.add()
    # A channel that loses every third message.
    lossy = """
    const Channel = BroadcastChannel;
    let number = 0;
    window.BroadcastChannel = class extends Channel {
      set onmessage(listener) {
        super.onmessage = (event) => { if (++number % 3 !== 0) listener(event); };
      }
    };
    """
    leader, second = await tab(), await tab(before=lossy)
    for progress in range(1, 30):
        gateway.change(task, status="running", progress=progress)
        await asyncio.sleep(0.01)
    gateway.change(task, status="ready", asset_id="ast_1")
    await leader.complete()
    await second.complete()
    await eventually_async(lambda: len(gateway.streams) == 1)


async def test_closing_a_follower_leaves_the_leader(tab: OpenTab, gateway: FakeGateway) -> None:
    task = gateway.add()
    leader, second = await tab(), await tab()
    await second.complete()
    await second.browser.run("feed.close()")
    gateway.change(task, status="queued")
    await leader.complete()
    assert await second.get("feed.tasks[0].status") == "created"
    await leader.browser.run("feed.close()")
    await eventually_async(lambda: not gateway.streams)
    await second.browser.run("feed.start()")
    await second.complete()
    await eventually_async(lambda: len(gateway.streams) == 1)


async def test_without_locks_every_tab_is_on_its_own(tab: OpenTab, gateway: FakeGateway) -> None:
    gateway.add()
    none = "Object.defineProperty(navigator, 'locks', { value: undefined });"
    broken = (
        "navigator.locks.request = async () => { throw new DOMException('no', 'SecurityError'); };"
    )
    for before in (none, broken):
        page = await tab(before=before)
        await page.complete()
    assert len(gateway.asked("/events")) == 2


async def test_leaders_come_and_go_and_nothing_is_missed(
    tab: OpenTab, gateway: FakeGateway
) -> None:
    """B5"""
    task = gateway.add()
    stays = await tab()
    for number in range(4):
        passing = await tab()
        await passing.complete()
        await stays.browser.run("feed.close(); feed.start()")
        gateway.change(task, status="running", progress=number)
        await passing.complete()
        # A socket that a tab has closed may reach the server after the next one's request.
        await eventually_async(lambda: len(gateway.streams) == 1)
        await close(passing)
        gateway.change(task, status="running", progress=50 + number)
        await stays.complete()
        await eventually_async(lambda: len(gateway.streams) == 1)
    assert await stays.get("feed.counters.breaks") == 0
    assert len(gateway.asked("/tasks")) == 1, "each leader went on from the one before"
