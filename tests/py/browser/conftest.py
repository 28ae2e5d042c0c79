"""
Fixtures of the browser tests.

`chromium` is one browser for all of them, `browser` a fresh tab of it, `gateway` a gateway in
memory, and `feed` a blank page in that tab that follows the gateway's project.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.py.browser.chromium import Browser, literal
from tests.py.browser.fake_gateway import PROJECT, FakeGateway
from tests.py.support.waiting import eventually_async

# Everything a hundredth to a tenth of what it is outside.
QUICK = {
    "request": 3000,
    "silence": 1500,
    "suspect": 700,
    "ask": 300,
    "watch": 50,
    "stable": 300,
    "backoff": 40,
    "backoffCap": 300,
    "nudge": 20,
    "hiddenFloor": 1000,
    "pollMin": 100,
    "pollMax": 300,
    "resetJitter": 50,
    "behind": 300,
    "deniedWait": 200,
    "detail": 5,
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    # A tab that was frozen or hidden does not draw any longer, so nobody inherits one.
    first = chromium.driver.current_window_handle
    chromium.driver.switch_to.new_window("tab")
    yield chromium
    chromium.driver.close()
    chromium.driver.switch_to.window(first)


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    async with FakeGateway().serve() as serving:
        yield serving


class FeedPage:
    """A blank page that follows the project, and what it saw."""

    def __init__(self, browser: Browser, gateway: FakeGateway) -> None:
        self.browser = browser
        self.gateway = gateway

    async def start(self, options: str = "", before: str = "", **timing: int) -> None:
        """
        Open the page and connect. `options` are more members of the options object, `before` is
        run before the module is loaded.
        """
        await self.browser.open(f"{self.gateway.origin}/blank")
        await self.browser.run(
            f"""
            {before}
            const module = await import('/static/aivedio.js');
            window.module = module;
            window.seen = {{ states: [], changes: [], proofs: [] }};
            window.feed = module.connect({{
              project: {literal(PROJECT)},
              timing: {literal({**QUICK, **timing})},
              onStatus: (status) => {{
                if (seen.states.at(-1) !== status.state) seen.states.push(status.state);
                seen.proofs.push(status.proven);
              }},
              onChange: (change) => seen.changes.push(change),
              {options}
            }});
            """
        )

    async def get(self, expression: str) -> Any:
        return await self.browser.run(f"return {expression};")

    async def until(self, expression: str, timeout: float = 10.0) -> Any:
        async def check() -> Any:
            return await self.get(expression)

        return await eventually_async(check, timeout, expression)

    async def outlast(self, milliseconds: int) -> None:
        """
        Wait until every timer that the page has set for so long or less must have fired.

        Timers of a page fire in the order in which they are due, however slow the machine is. And a
        request that one of them made comes before the marker's.
        """
        await self.browser.run(
            f"await new Promise((done) => setTimeout(done, {milliseconds + 1}));"
            "await fetch('/blank');"
        )

    async def live(self) -> None:
        await self.until("feed.proven")

    async def complete(self, timeout: float = 10.0) -> None:
        """Wait until the page proves that it shows what the gateway holds, and check it."""

        async def check() -> bool:
            proven, cursor, shown = await self.get(
                "[feed.proven, feed.counters.cursor, feed.tasks]"
            )
            assert proven and cursor == self.gateway.head
            assert shown == self.gateway.snapshot()
            return True

        await eventually_async(check, timeout)


@pytest.fixture
def feed(browser: Browser, gateway: FakeGateway) -> FeedPage:
    return FeedPage(browser, gateway)
