"""docs/browser.md and aivedio.d.ts say what the module does: the example runs, the names match."""

from __future__ import annotations

import re
from pathlib import Path

from tests.py.browser.chromium import Browser
from tests.py.browser.conftest import QUICK, FeedPage
from tests.py.browser.fake_gateway import PROJECT, STATIC, Answer, FakeGateway
from tests.py.support.waiting import eventually_async

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "browser.md"
TYPES = (STATIC / "aivedio.d.ts").read_text()
MEMBERS = """
const names = (type) => Object.getOwnPropertyNames(type.prototype);
return Object.fromEntries(Object.entries(module)
  .filter(([, value]) => String(value).startsWith('class'))
  .map(([name, type]) => [name, names(type).filter((member) => member !== 'constructor')]));
"""


def body_of(kind: str, name: str) -> str:
    """Return what stands between the braces of a class or interface of the types."""
    found = re.search(rf"export {kind} {name}\b[^{{]*{{\n(.*?)\n}}", TYPES, re.DOTALL)
    assert found, name
    return found[1]


def keys_of(name: str) -> set[str]:
    return set(re.findall(r"^  (?:readonly )?(\w+)\??:", body_of("interface", name), re.MULTILINE))


async def test_the_example_of_the_guide_runs(browser: Browser, gateway: FakeGateway) -> None:
    example = re.search(r"```html\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert example
    script = re.search(r"<script type=\"module\">\n(.*?)</script>", example[1], re.DOTALL)
    assert script and len(script[1].splitlines()) <= 10
    task = gateway.add("a fox")
    page = Answer(200, example[1].encode(), {"content-type": "text/html; charset=utf-8"})
    gateway.answers["page"].append(page)
    browser.complaints()
    await browser.open(f"{gateway.origin}/example?project={PROJECT}")

    async def shows(state: str, line: str) -> bool:
        return bool(
            await browser.run(
                "const text = (id) => document.getElementById(id).innerText.trim();"
                "return text('state') === given[0] && text('jobs') === given[1];",
                state,
                line,
            )
        )

    await eventually_async(lambda: shows("live", "a fox: created"))
    gateway.change(task, status="running", progress=40)
    await eventually_async(lambda: shows("live", "a fox: running 40"))
    assert browser.complaints() == []


async def test_the_types_name_what_is_there(feed: FeedPage, gateway: FakeGateway) -> None:
    await feed.start()
    await feed.live()
    exported = set(await feed.get("Object.keys(module)"))
    assert exported == set(re.findall(r"export (?:class|function) (\w+)", TYPES))
    members = await feed.browser.run(MEMBERS)
    for name, found in members.items():
        body = body_of("class", name)
        typed = set(re.findall(r"^  (?:readonly |get )?(\w+)(?:[(:<?])", body, re.MULTILINE))
        assert set(found) <= typed | {"addEventListener"}, name
        assert typed >= set(found), name
    gateway.add("typed", status="failed", error={"code": "a", "message": "b", "trace_id": "c"})
    await feed.complete()
    [task] = await feed.get("feed.tasks")
    assert set(task) == keys_of("Task")
    assert set(task["error"]) == keys_of("TaskError")
    assert set(await feed.get("feed.status")) == keys_of("FeedStatus")
    assert set(await feed.get("feed.counters")) == keys_of("FeedCounters")
    assert set(await feed.get("seen.changes[0]")) == keys_of("FeedChange")
    assert set(QUICK) == keys_of("FeedTiming")


def test_every_state_is_explained() -> None:
    listed = re.search(r"export type FeedState =\n(.*?);", TYPES, re.DOTALL)
    assert listed
    states = set(re.findall(r"'(\w+)'", listed[1]))
    explained = set(re.findall(r"^\| `(\w+)` \|", GUIDE.read_text(), re.MULTILINE))
    assert states - {"idle"} == explained - {"state"}
    used = set(re.findall(r"(\w+): '", (STATIC / "page" / "connection.js").read_text()))
    assert states <= used | {"live"}, "the page has a word for each"
