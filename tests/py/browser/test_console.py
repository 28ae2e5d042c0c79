"""The operators' page in Chromium, on a real page and a real database where much has gone wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from edge import database as door
from edge.cli import operator_link
from tests.py.browser.chromium import Browser
from tests.py.browser.test_page import FAINT, NAMELESS
from tests.py.conftest import Connect
from tests.py.console.running import WHO, Console, running
from tests.py.console.seed import Seed, fault_ridden
from tests.py.gateway.proxy import proxied
from tests.py.support.clusters import Cluster
from tests.py.support.sessions import rows, value
from tests.py.support.waiting import eventually_async


class Page:
    """The page as an operator meets it."""

    def __init__(self, browser: Browser, console: Console, conninfo: str) -> None:
        self.browser = browser
        self.console = console
        self._conninfo = conninfo

    async def log_in(self, role: str, path: str = "") -> None:
        await self.browser.devtools("Network.clearBrowserCookies")
        async with door.connect(self._conninfo, role="aivedio_operator", max_size=1) as db:
            link = await operator_link.make(db, self.console.url, role, WHO)
        await self.browser.open(link)
        await self.reads("#pill", "Live")
        if path:
            await self.browser.run("location.hash = given[0]", path)

    async def text(self, selector: str) -> str:
        script = (
            "const one = document.querySelector(given[0]);"
            "return one?.checkVisibility() ? one.innerText : '';"
        )
        return " ".join(str(await self.browser.run(script, selector)).split())

    async def reads(self, selector: str, *wanted: str) -> str:
        async def check() -> str:
            text = await self.text(selector)
            for part in wanted:
                assert part in text, f"{part!r} is not in {text!r}"
            return text or "nothing"

        return await eventually_async(check, 40.0)

    async def hides(self, selector: str) -> None:
        async def check() -> bool:
            return await self.text(selector) == ""

        await eventually_async(check, 40.0, f"{selector} is gone")

    async def press(self, within: str, label: str) -> None:
        """Press the button with this label, once it is there."""

        async def check() -> Any:
            return await self.browser.run(
                "const all = [...document.querySelectorAll(`${given[0]} button`)];"
                "const one = all.find((each) => each.textContent.trim() === given[1]);"
                "if (!one || one.disabled) return false; one.click(); return true;",
                within,
                label,
            )

        await eventually_async(check, 40.0, f"{label} in {within}")

    async def because(self, why: str, verb: str) -> None:
        await self.browser.run("document.getElementById('reason').value = given[0];", why)
        await self.press("#dialog", verb)
        await self.reads("#dialog", "Done", f"Audited as {WHO}: {why}")

    async def close(self) -> None:
        await self.press("#dialog", "Close")


@pytest.fixture
def seed(connect: Connect) -> Seed:
    return fault_ridden(connect())


@pytest.fixture
async def page(
    browser: Browser, database: str, free_port: Callable[[], int]
) -> AsyncIterator[Page]:
    browser.complaints()
    async with running(database, free_port()) as console:
        yield Page(browser, console, database)


async def test_it_shows_a_pipeline_that_runs(page: Page, connect: Connect) -> None:
    session = connect(autocommit=True)
    await page.log_in("act")
    await page.reads("#verdict", "All is well", "No job is under way.")
    rows(session, "select fixture.job('one', 'running'), fixture.job('two', 'queued')")
    await page.reads("#verdict", "All is well", "2 jobs are under way.")
    for event, name in (("a", "one"), ("b", "two")):
        rows(
            session,
            "select aivedio.accept_callbacks(array[fixture.delivery(%s, %s, 'succeeded')])",
            event,
            name,
        )
    await page.reads("#path", "Inbox 2 waiting")
    rows(session, "select aivedio.process_inbox('{0,1,2,3,4,5,6,7}')")
    await page.reads("#path", "Inbox 0 waiting", "Outbox 2 to send")
    await page.reads("#underway", "2 provider succeeded")
    drawn = "return document.querySelectorAll('#path .trend .line')[2].getAttribute('d')"
    assert "L" in await page.browser.run(drawn)
    assert page.browser.complaints() == []


async def test_it_says_what_needs_somebody(page: Page, seed: Seed) -> None:
    await page.log_in("act")
    await page.reads("#verdict", "things to look at", "1 circuit is open", "2 dead callbacks")
    await page.reads("#alarms", "outbox parked", "A message could not be sent")
    await page.reads("#cases", "conflict", "The provider told two different ends.")
    await page.reads("#parked", f"message {seed.message}: TooLarge")
    await page.reads("#letters", "2 messages of group media")
    await page.press("#letters", "show them")
    await page.reads("#letters", "Rejected VC701")
    await page.reads("#providers", "runway", "default: credential refused", "Not in use: dashscope")
    await page.reads("#actions", "somebody start attempt")


async def test_a_job_is_found_with_its_whole_history(page: Page, seed: Seed) -> None:
    await page.log_in("act")
    await page.browser.run(
        "document.getElementById('words').value = given[0];"
        "document.getElementById('search').requestSubmit();",
        "provider-over",
    )
    await page.reads("#task", seed.over, "It is over and will not move any more.")
    told = await page.reads(".timeline", "Job created", "webhook says failed: applied")
    order = ("Job created", "Callback", "says failed: applied", "is failed, by", "Case conflict")
    places = [told.index(part) for part in order]
    assert places == sorted(places)
    assert "Version 2 parked" in told
    entries = "return document.querySelectorAll('.entry').length"
    before = await page.browser.run(entries)
    await page.press(".kinds", "callback 2")
    await eventually_async(lambda: _is(page, entries, before - 2))
    await page.browser.run("location.hash = '#/find/nothing'")
    await page.reads("#found", "Nothing has this id")
    await page.browser.run("location.hash = '#/task/00000000-0000-7000-8000-000000000000'")
    await page.reads("#task", "There is no such job.")
    assert page.browser.complaints() == []


async def _is(page: Page, script: str, wanted: object) -> bool:
    return bool(await page.browser.run(script) == wanted)


async def test_a_dead_callback_is_rehearsed_and_applied(
    page: Page, seed: Seed, connect: Connect
) -> None:
    session = connect(autocommit=True)
    await page.log_in("act", f"#/task/{seed.waits}")
    await page.press(".timeline", "rehearse")
    await page.reads("#dialog", "Nothing was changed", "running", "provider succeeded")
    status = "select status from aivedio.generation_tasks where id = %s"
    assert value(session, status, UUID(seed.waits)) == "running"
    await page.press("#dialog", "Apply it…")
    await page.press("#dialog", "Apply")
    assert await page.browser.run("return document.getElementById('reason').matches(':invalid')")
    await page.because("the job is there now", "Apply")
    assert value(session, status, UUID(seed.waits)) == "provider_succeeded"
    await page.close()
    await page.reads("#task", "The media consumer has not heard of its success.")
    await page.reads(".timeline", f"{WHO}: replay callback")


async def test_a_case_is_resolved(page: Page, seed: Seed, connect: Connect) -> None:
    await page.log_in("act")
    (case,) = (await page.console.look("cases?kind=conflict"))["cases"]
    await page.browser.run(
        "window.rowOf = () => [...document.querySelectorAll('#cases .row-item')]"
        ".find((row) => row.innerText.startsWith('conflict'));"
    )
    await eventually_async(lambda: _is(page, "return Boolean(rowOf())", True))
    await page.browser.run("rowOf().querySelector('button').click()")
    await page.reads("#dialog", "What is recorded stands.", case["id"])
    await page.because("the provider says so", "Keep")
    await page.close()
    await eventually_async(lambda: _is(page, "return Boolean(rowOf())", False))
    resolved = rows(
        connect(),
        "select resolution, resolved_by, reason from aivedio.reconciliation_cases where id = %s",
        UUID(case["id"]),
    )
    assert resolved == [("kept", WHO, "the provider says so")]
    await page.reads("#actions", "the provider says so")


async def test_the_other_repairs(page: Page, seed: Seed, connect: Connect) -> None:
    await page.log_in("act")
    repairs = (
        ("#alarms", "Resolve…", "Resolve", "resolve_alarm"),
        ("#parked", "Send again…", "Send again", "requeue_outbox"),
        ("#callbacks", "Requeue…", "Requeue", "requeue_callback"),
        ("#letters", "Deliver again…", "Deliver again", "requeue_dead_letters"),
        ("#providers", "Close…", "Close it", "reset_circuit"),
    )
    for within, button, verb, _ in repairs:
        await page.press(within, button)
        await page.because(f"to see {verb}", verb)
        await page.close()
    for within in ("#parked", "#letters"):
        await page.hides(within)
    await page.browser.run("location.hash = given[0]", f"#/task/{seed.over}")
    await page.press("#task", "Start a new attempt…")
    await page.because("the customer waits", "Start a new attempt")
    await page.close()
    await page.reads("#task", "A submit process will send it now.", "attempt 2")
    done = rows(
        connect(),
        "select action from aivedio.operator_actions where actor = %s order by id offset 1",
        WHO,
    )
    assert [action for (action,) in done] == [name for *_, name in repairs] + ["start_attempt"]


async def test_who_may_only_look_is_offered_nothing(page: Page, seed: Seed) -> None:
    await page.log_in("read")
    await page.reads("#pill", "Live, read only")
    await page.reads("#cases", "conflict")
    await page.reads("#callbacks", "orphan")
    offered = (
        "return [...document.querySelectorAll('#overview button, #task button')]"
        ".filter((one) => one.checkVisibility()).map((one) => one.textContent.trim())"
    )
    assert set(await page.browser.run(offered)) == {"show them"}
    await page.browser.run("location.hash = given[0]", f"#/task/{seed.over}")
    await page.reads("#task", "Somebody should look at a case of it.")
    buttons = await page.browser.run(offered)
    assert not [one for one in buttons if "…" in one or one == "rehearse"]


async def test_an_outage_is_said_and_heals(
    browser: Browser, database: str, cluster: Cluster, free_port: Callable[[], int]
) -> None:
    port = free_port()
    name = conninfo_to_dict(database)["dbname"]
    conninfo = make_conninfo(host="127.0.0.1", port=port, user="postgres", dbname=name)
    async with proxied(port, cluster.port) as proxy, running(conninfo, free_port()) as console:
        page = Page(browser, console, database)
        await page.log_in("act")
        await page.reads("#verdict", "All is well")
        await proxy.cut()
        await page.reads("#banner", "The database gives no answer.")
        await page.reads("#pill", "Interrupted")
        await proxy.mend()
        await page.reads("#pill", "Live")
        await page.hides("#banner")


async def test_without_a_session_it_says_how_to_get_one(page: Page) -> None:
    await page.browser.devtools("Network.clearBrowserCookies")
    await page.browser.open(page.console.url)
    await page.reads("#gate", "You are not signed in", "aivedio operator-link")
    await page.hides("#overview")


async def test_it_fits_reads_and_names_everything(page: Page, seed: Seed) -> None:
    size: dict[str, Any] = {"height": 800, "deviceScaleFactor": 1}
    try:
        for scheme, width in (("light", 1280), ("dark", 390)):
            command = "Emulation.setDeviceMetricsOverride"
            await page.browser.devtools(command, mobile=width < 600, width=width, **size)
            features = [
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]
            await page.browser.devtools("Emulation.setEmulatedMedia", features=features)
            await page.log_in("act")
            await page.reads("#providers", "runway")
            await _is_fit(page, width)
            await page.browser.run("location.hash = given[0]", f"#/task/{seed.over}")
            await page.reads(".timeline", "Job created")
            await _is_fit(page, width)
    finally:
        await page.browser.devtools("Emulation.clearDeviceMetricsOverride")
        await page.browser.devtools("Emulation.setEmulatedMedia", features=[])


async def _is_fit(page: Page, width: int) -> None:
    wide = await page.browser.run("return document.documentElement.scrollWidth")
    assert wide <= width
    assert await page.browser.run(NAMELESS) == []
    assert await page.browser.run(FAINT) == []
