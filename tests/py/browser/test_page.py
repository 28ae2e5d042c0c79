"""The page in Chromium: what a person sees of jobs, of trouble, and of how true it all is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.py.browser.chromium import Browser
from tests.py.browser.fake_gateway import PROJECT, Answer, FakeGateway
from tests.py.support.waiting import eventually_async

CARDS = """
return [...document.querySelectorAll('#list > .job')].map((card) => ({
  prompt: card.querySelector('.prompt').textContent,
  badge: card.querySelector('.badge-text').textContent,
  kind: card.dataset.kind,
  now: card.querySelector('.track').getAttribute('aria-valuenow'),
  says: card.querySelector('.track').getAttribute('aria-valuetext'),
  text: card.innerText,
}));
"""
COUNTS = """
const cells = [...document.querySelectorAll('#flow button')];
return Object.fromEntries(cells.map((cell) => [
  cell.querySelector('.name').textContent, Number(cell.querySelector('.count').textContent),
]));
"""


class Page:
    """The page as its user meets it."""

    def __init__(self, browser: Browser, gateway: FakeGateway) -> None:
        self.browser = browser
        self.gateway = gateway

    async def open(self, path: str = f"/?project={PROJECT}") -> None:
        self.browser.complaints()
        await self.browser.open(self.gateway.origin + path)

    async def cards(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = await self.browser.run(CARDS)
        return found

    async def sees(self, *badges: str) -> list[dict[str, str]]:
        """Wait until the jobs' badges are these, from the newest on."""

        cards: list[dict[str, str]] = []

        async def check() -> bool:
            cards[:] = await self.cards()
            assert [card["badge"] for card in cards] == list(badges)
            return True

        await eventually_async(check, 10.0)
        return cards

    async def text(self, selector: str) -> str:
        """Return what can be seen of an element; nothing if it is hidden."""
        found = await self.browser.run(
            "const found = document.querySelector(given[0]);"
            "return found.checkVisibility() ? found.innerText.trim() : '';",
            selector,
        )
        return str(found)

    async def reads(self, selector: str, part: str) -> str:
        async def check() -> str:
            text = await self.text(selector)
            assert part in text
            return text

        return await eventually_async(check, 10.0)

    async def click(self, selector: str) -> None:
        await self.browser.run("document.querySelector(given[0]).click()", selector)

    async def type(self, selector: str, text: str) -> None:
        await self.browser.run("document.querySelector(given[0]).value = given[1]", selector, text)


@pytest.fixture
async def page(browser: Browser, gateway: FakeGateway) -> AsyncIterator[Page]:
    shown = Page(browser, gateway)
    yield shown
    # The strict policy of the fake gateway makes any inline script, style or foreign file complain.
    assert browser.complaints() == []


async def test_a_job_is_followed_to_ready(page: Page, gateway: FakeGateway) -> None:
    task = gateway.add("a fox in the snow")
    await page.open()
    await page.sees("Created")
    await page.reads("#pill", "Live")
    gateway.change(task, status="queued")
    await page.sees("Queued")
    gateway.change(task, status="running", progress=40)
    [card] = await page.sees("Generating 40%")
    assert (card["kind"], card["says"]) == ("active", "Generating 40%")
    assert 0 < int(card["now"]) < 50
    for stage in ("backhauling", "verifying", "transcoding", "publishing"):
        gateway.change(task, status="processing_media", stage=stage, progress=50)
        await page.sees(f"{stage.capitalize()} 50%")
    gateway.change(task, status="ready", asset_id="ast_42")
    [card] = await page.sees("Ready")
    assert card["now"] == "100"
    assert "ast_42" in card["text"]
    assert (await page.browser.run(COUNTS))["Ready"] == 1
    await eventually_async(
        lambda: page.browser.run(
            "return document.getElementById('news').textContent === '1 job ready'"
        )
    )


async def test_a_failure_tells_its_message_and_trace(page: Page, gateway: FakeGateway) -> None:
    message = "The provider could not generate this video."
    error = {"code": "provider_failed", "message": message, "trace_id": "trc_99"}
    task = gateway.add(status="failed", error=error)
    await page.open()
    [card] = await page.sees("Failed")
    assert message in card["text"] and "trc_99" in card["text"]
    await page.click(".again")
    await page.sees("Created")
    gateway.change(task, status="running", progress=1, attempt_no=2)
    [card] = await page.sees("Generating 1%")
    assert message not in card["text"] and "attempt 2" in card["text"]


async def test_text_is_never_markup(page: Page, gateway: FakeGateway) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    error = {"code": "unknown", "message": evil, "trace_id": evil}
    gateway.add(evil, status="failed", error=error, model=evil)
    await page.open()
    [card] = await page.sees("Failed")
    assert card["prompt"] == evil
    assert await page.browser.run("return document.title") == "AiVedio"
    assert (
        await page.browser.run("return document.querySelectorAll('main img, main script').length")
        == 0
    )


async def test_creating_a_job(page: Page, gateway: FakeGateway) -> None:
    await page.open()
    assert "Describe a video above" in await page.reads("#empty", "No jobs yet")
    await page.click("#create")
    assert "Describe the video first" in await page.reads("#composer-trouble", "first")
    assert await page.browser.run("return document.activeElement.id") == "prompt"
    await page.type("#prompt", "  waves at night  ")
    await page.click("#create")
    await page.sees("Created")
    await page.reads(".prompt", "waves at night")
    assert await page.text("#empty") == "" and await page.text("#composer-trouble") == ""
    assert await page.browser.run("return document.getElementById('prompt').value") == ""


async def test_five_at_once(page: Page, gateway: FakeGateway) -> None:
    await page.open()
    await page.click("#five")
    await page.sees(*["Created"] * 5)
    assert len({row["prompt"] for row in gateway.tasks.values()}) == 5
    assert (await page.browser.run(COUNTS))["Queued"] == 5


async def test_a_refused_job_says_why(page: Page, gateway: FakeGateway) -> None:
    await page.open()
    await page.reads("#pill", "Live")
    gateway.answers["post"].append(Answer.problem(422, "The prompt is too long."))
    await page.type("#prompt", "waves")
    await page.click("#create")
    await page.reads("#composer-trouble", "The prompt is too long.")
    assert await page.browser.run("return document.getElementById('prompt').value") == "waves"
    assert not await page.browser.run("return document.getElementById('create').disabled")


async def test_canceling(page: Page, gateway: FakeGateway) -> None:
    task = gateway.add(status="running", progress=30)
    await page.open()
    await page.sees("Generating 30%")
    gateway.answers["post"].append(Answer.problem(409, "The task is past that."))
    await page.click(".cancel")
    await page.reads(".job-trouble", "The task is past that.")
    await page.click(".cancel")
    await page.sees("Canceling")
    assert await page.text(".cancel") == ""
    gateway.change(task, status="canceled")
    [card] = await page.sees("Canceled")
    assert "Try again" in card["text"] and "past that" not in card["text"]


async def test_newest_first_and_only_what_changed_is_touched(
    page: Page, gateway: FakeGateway
) -> None:
    first, second = gateway.add("first"), gateway.add("second")
    await page.open()
    cards = await page.sees("Created", "Created")
    assert [card["prompt"] for card in cards] == ["second", "first"]
    await page.browser.run(
        "window.touched = [];"
        "const cards = [...document.querySelectorAll('#list > .job')];"
        "window.before = cards;"
        "new MutationObserver((all) => all.forEach(({ target }) => touched.push("
        "  target.parentElement?.closest('.job')?.dataset.id ?? target.id)))"
        ".observe(document.getElementById('list'),"
        "  { subtree: true, childList: true, characterData: true });"
    )
    gateway.change(first, status="running", progress=10)
    await page.sees("Created", "Generating 10%")
    assert set(await page.browser.run("return touched")) == {first}
    gateway.add("third")
    await page.sees("Created", "Created", "Generating 10%")
    kept = "return window.before.every((card) => document.contains(card))"
    assert await page.browser.run(kept)
    assert second != first


async def test_the_overview_filters(page: Page, gateway: FakeGateway) -> None:
    gateway.add("done", status="ready", asset_id="ast_1")
    going = gateway.add("going", status="running", progress=5)
    await page.open()
    await page.sees("Generating 5%", "Ready")
    await page.click("#flow button:nth-of-type(2)")
    await page.sees("Generating 5%")
    assert await page.text("#jobs-count") == "1 of 2 jobs"
    gateway.change(going, status="provider_succeeded")
    await page.sees()
    await page.reads("#empty", "No job is here now")
    await page.click("#show-all")
    await page.sees("Generated", "Ready")


async def test_many_jobs_are_shown_in_portions(page: Page, gateway: FakeGateway) -> None:
    for number in range(120):
        gateway.add(f"job {number}", status="ready", asset_id="ast_1")
    await page.open()
    await page.sees(*["Ready"] * 50)
    assert await page.text("#jobs-count") == "120 jobs"
    await page.click("#more")
    await page.click("#more")
    await page.sees(*["Ready"] * 120)
    assert await page.text("#more") == ""


async def test_the_banner_tells_how_old_it_is(page: Page, gateway: FakeGateway) -> None:
    task = gateway.add(status="running", progress=10)
    await page.open()
    await page.reads("#pill", "Live")
    assert await page.text("#banner") == ""
    await gateway.stop()
    await page.reads("#pill", "Reconnecting")
    banner = await page.reads("#banner", "seconds ago")
    assert banner.startswith("Realtime updates interrupted, showing a snapshot from")
    role = "return document.getElementById('banner').getAttribute('role')"
    assert await page.browser.run(role) == "status"
    gateway.change(task, status="ready", asset_id="ast_7")
    await gateway.listen(gateway.port)
    await page.click("#banner-retry")
    await page.sees("Ready")
    await page.reads("#pill", "Live")
    assert await page.text("#banner") == ""


async def test_a_quick_reconnect_shows_no_banner(page: Page, gateway: FakeGateway) -> None:
    gateway.add()
    await page.open()
    await page.reads("#pill", "Live")
    await page.browser.run(
        "window.shown = [];"
        "new MutationObserver(() => shown.push(document.getElementById('banner').hidden))"
        ".observe(document.getElementById('banner'), { attributes: true });"
    )
    for stream in gateway.streams:
        stream.cut()
    await eventually_async(lambda: len(gateway.asked("/events")) == 2)
    await page.reads("#pill", "Live")
    assert False not in await page.browser.run("return shown")


async def test_not_signed_in(page: Page, gateway: FakeGateway) -> None:
    gateway.add("secret")
    gateway.always["tasks"] = Answer.problem(401, "Who is asking is not known")
    await page.open()
    gate = await page.reads("#gate", "You are not signed in")
    assert "Open the login link" in gate and "Who is asking is not known" in gate
    assert await page.text("#composer") == "" and await page.text("#banner") == ""
    gateway.always.clear()
    await page.click("#gate-retry")
    await page.sees("Created")
    assert await page.text("#gate") == ""
    assert await page.text("#composer") != ""


async def test_an_unknown_project(page: Page, gateway: FakeGateway) -> None:
    await page.open("/?project=0193d2c8-0000-7000-8000-00000000000b")
    gate = await page.reads("#gate", "cannot be opened")
    assert "There is no such project." in gate and "trc_test" in gate


async def test_no_project_in_the_address(page: Page, gateway: FakeGateway) -> None:
    gateway.add("mine")
    await page.open("/")
    # The session knows one project, or several, or there is no session.
    await page.sees("Created")
    gateway.me = Answer.json({"projects": [PROJECT, "0193d2c8-0000-7000-8000-00000000000b"]})
    await page.open("/")
    await page.reads("#gate", "Which project?")
    assert (
        await page.browser.run("return document.getElementById('gate-known').options.length") == 2
    )
    await page.type("#gate-id", PROJECT)
    await page.click("#gate-project button")
    await page.sees("Created")
    gateway.me = Answer.problem(401)
    await page.open("/")
    await page.reads("#gate", "You are not signed in")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
async def test_it_fits_any_width(page: Page, gateway: FakeGateway, width: int) -> None:
    long = "Wandering" * 40
    error = {"code": "unknown", "message": long, "trace_id": "t" * 60}
    gateway.add(long, status="failed", error=error)
    gateway.add("short", status="ready", asset_id="a" * 60)
    gateway.add("going", status="running", progress=100, model="m" * 60)
    size: dict[str, Any] = {"width": width, "height": 800, "deviceScaleFactor": 1}
    command = "Emulation.setDeviceMetricsOverride"
    await page.browser.devtools(command, mobile=width < 600, **size)
    try:
        await page.open()
        await page.sees("Generating 100%", "Ready", "Failed")
        widths = await page.browser.run(
            "const { documentElement: root } = document; return [root.scrollWidth, innerWidth];"
        )
        assert widths[0] <= widths[1] == width
    finally:
        await page.browser.devtools("Emulation.clearDeviceMetricsOverride")


async def test_everything_has_a_name_and_enough_contrast(page: Page, gateway: FakeGateway) -> None:
    error = {"code": "unknown", "message": "Something went wrong.", "trace_id": "trc_1"}
    gateway.add("failed", status="failed", error=error)
    gateway.add("ready", status="ready", asset_id="ast_1")
    gateway.add("going", status="running", progress=50)
    gateway.add("doubt", status="provider_status_unknown")
    gateway.add("waiting", status="queued")
    gateway.add("canceled", status="canceled")
    for scheme in ("light", "dark"):
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        await page.browser.devtools("Emulation.setEmulatedMedia", features=features)
        try:
            await page.open()
            await page.reads("#pill", "Live")
            await eventually_async(lambda: _count(page, 6))
            assert await page.browser.run(NAMELESS) == []
            assert await page.browser.run(FAINT) == []
            running = "return document.getAnimations().length"
            assert await page.browser.run(running) == 0
        finally:
            await page.browser.devtools("Emulation.setEmulatedMedia", features=[])


async def _count(page: Page, number: int) -> bool:
    return len(await page.cards()) == number


# Controls without a name, and images and bars without one.
NAMELESS = """
const controls = document.querySelectorAll('button, input, select, textarea, [role=progressbar]');
return [...controls].filter((control) => control.checkVisibility()).filter((control) => {
  const labels = [...(control.labels ?? [])].map((label) => label.textContent);
  const name = control.getAttribute('aria-label') || labels.join('')
    || (control.tagName === 'BUTTON' && control.textContent);
  return !name?.trim();
}).map((control) => control.outerHTML);
"""

# Texts whose contrast is below what WCAG AA asks of small text.
FAINT = """
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
function rgba(colour) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
function ground(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const layer = rgba(getComputedStyle(at).backgroundColor);
    layers.push(layer);
    if (layer[3] === 1) break;
  }
  return layers.reduceRight((below, [r, g, b, a]) =>
    [r, g, b].map((value, index) => value * a + (below[index] ?? 255) * (1 - a)), []);
}
function light([r, g, b]) {
  const [x, y, z] = [r, g, b].map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}
const faint = [];
for (const element of document.body.querySelectorAll('*')) {
  const own = [...element.childNodes].some(
    (node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  if (!own || !element.checkVisibility() || element.disabled) continue;
  const [one, two] = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
  const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
  if (contrast < 4.5) faint.push([element.className, element.textContent.trim(), contrast]);
}
return faint;
"""


async def test_the_keyboard_creates_and_reaches_everything(
    page: Page, gateway: FakeGateway
) -> None:
    gateway.add("going", status="running", progress=50)
    await page.open()
    await page.sees("Generating 50%")
    reached = await page.browser.run(
        "const all = [...document.querySelectorAll('a, button, input, select, textarea')];"
        "return all.filter((one) => one.checkVisibility() && one.tabIndex < 0).length;"
    )
    assert reached == 0
    await page.type("#prompt", "by keyboard")
    await page.browser.run(
        "document.getElementById('prompt').dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }))"
    )
    await page.sees("Created", "Generating 50%")


async def test_a_thousand_updates_move_no_card(page: Page, gateway: FakeGateway) -> None:
    tasks = [gateway.add(f"job {number}", status="running", progress=0) for number in range(50)]
    await page.open()
    await page.sees(*["Generating 0%"] * 50)
    await page.browser.run(
        "window.moved = 0; window.draws = new Map();"
        "const list = document.getElementById('list');"
        "const count = (all) => { moved += all.length; };"
        "new MutationObserver(count).observe(list, { childList: true });"
        "for (const badge of list.querySelectorAll('.badge-text')) {"
        "  draws.set(badge, 0);"
        "  new MutationObserver(() => draws.set(badge, draws.get(badge) + 1))"
        "    .observe(badge, { childList: true });"
        "}"
    )
    for progress in range(1, 21):
        for task in tasks:
            gateway.change(task, status="running", progress=5 * progress)
        await asyncio.sleep(0.02)
    await page.sees(*["Generating 100%"] * 50)
    assert await page.browser.run("return moved") == 0
    assert await page.browser.run("return Math.max(...draws.values())") <= 20
