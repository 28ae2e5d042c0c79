"""
The page on the whole system, as `aivedio up` runs it: jobs created there become ready, and a
gateway that dies in the middle costs nothing but a moment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.py.browser.chromium import Browser
from tests.py.support.ports import free_port
from tests.py.support.processes import command, descendants, holding
from tests.py.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("whole system on the page")

SHOWN = """
return [...document.querySelectorAll('#list > .job')].map((card) => [
  card.dataset.id,
  card.querySelector('.prompt').textContent,
  card.querySelector('.badge-text').textContent,
  card.querySelector('.asset-id').textContent,
]);
"""


@dataclass(frozen=True)
class System:
    """A running `aivedio up`, and the database behind it."""

    process: subprocess.Popen[bytes]
    folder: Path
    output: Path

    def link(self) -> str:
        def found() -> re.Match[str] | None:
            assert self.process.poll() is None, self.output.read_text()
            return re.search(r"http://\S+/login\?token=\S+", self.output.read_text())

        match = eventually(found, 120.0, "the link is printed")
        assert match is not None
        return match[0]

    def gateway(self) -> int:
        below = descendants(self.process.pid)
        (pid,) = (pid for pid in below if command(pid).endswith("edge.cli.app gateway"))
        return pid

    def tasks(self) -> list[dict[str, Any]]:
        """Return the project's tasks as the database holds them, newest first."""
        secrets = json.loads((self.folder / "secrets.json").read_text())
        with psycopg.connect(
            host=str(self.folder / "run"),
            user="postgres",
            password=secrets["postgres_password"],
            dbname="aivedio",
            connect_timeout=10,
        ) as session:
            row = session.execute(
                "select aivedio.list_snapshot(%s, %s)",
                [secrets["tenant_id"], secrets["project_id"]],
            ).fetchone()
        assert row is not None
        found: list[dict[str, Any]] = row[0]["tasks"]
        return found


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    place = Path(tempfile.mkdtemp(prefix="av-page-", dir="/tmp"))
    place.chmod(0o755)
    folder = place / "data"
    output = tmp_path_factory.mktemp("up") / "output"
    clean = {name: text for name, text in os.environ.items() if not name.startswith("AIVEDIO_")}
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "edge.cli.app", "up"),
                *("--data", str(folder), f"--port={free_port()}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=clean,
        )
    try:
        yield System(process, folder, output)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        eventually(lambda: holding(folder / "lock") == [], 10.0)
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def page(chromium: Browser, system: System) -> Browser:
    """The page, entered by the login link, with a feed of the test's own beside the page's."""
    chromium.complaints()
    chromium.driver.get(system.link())
    chromium.run_now(
        "const { connect } = await import('/static/aivedio.js');"
        "const project = new URLSearchParams(location.search).get('project');"
        "window.states = [];"
        "window.feed = connect({ project, onStatus: ({ state }) => states.push(state) });"
    )
    eventually(lambda: pill(chromium) == "Live" and chromium.run_now("return feed.proven"), 20.0)
    return chromium


def pill(page: Browser) -> str:
    return str(page.run_now("return document.getElementById('pill-text').textContent"))


def press(page: Browser, name: str, prompt: str = "") -> None:
    page.run_now("document.getElementById('prompt').value = given[0]", prompt)
    page.run_now("document.getElementById(given[0]).click()", name)


def badges(page: Browser) -> list[str]:
    return [badge for _, _, badge, _ in page.run_now(SHOWN)]


def newest_are(page: Browser, badge: str, count: int) -> Callable[[], bool]:
    return lambda: badges(page)[:count] == [badge] * count


def assert_complete(page: Browser, system: System) -> None:
    """The page and a feed show what the database holds, and say so."""

    def check() -> bool:
        truth = system.tasks()
        assert pill(page) == "Live"
        assert page.run_now("return feed.proven")
        assert page.run_now("return feed.tasks") == truth
        assert page.run_now(SHOWN) == [
            [task["id"], task["prompt"], task["status"].capitalize(), task["asset_id"] or ""]
            for task in truth
        ]
        return True

    eventually(check, 20.0)
    assert page.run_now("return feed.counters.breaks") == 0


def test_a_job_created_on_the_page_becomes_ready(page: Browser, system: System) -> None:
    press(page, "create", "a fox in the snow")
    eventually(lambda: any(badge.startswith("Generating") for badge in badges(page)), 30.0)
    eventually(newest_are(page, "Ready", 1), 60.0)
    assert_complete(page, system)
    newest = system.tasks()[0]
    assert (newest["prompt"], newest["status"]) == ("a fox in the snow", "ready")
    assert page.complaints() == []


def test_a_gateway_killed_in_the_middle_costs_a_moment(page: Browser, system: System) -> None:
    press(page, "five")

    def all_generate() -> bool:
        newest = badges(page)[:5]
        return len(newest) == 5 and all(badge.startswith("Generating") for badge in newest)

    eventually(all_generate, 30.0)
    before = system.gateway()
    page.run_now("states.length = 0")
    os.kill(before, signal.SIGKILL)
    eventually(lambda: pill(page) != "Live", 10.0)
    eventually(lambda: "live" in page.run_now("return states"), 60.0)
    eventually(newest_are(page, "Ready", 5), 90.0)
    assert system.gateway() != before
    assert_complete(page, system)
    states = page.run_now("return states")
    assert states[0] == "reconnecting" and states[-1] == "live"


def test_a_canceled_job_ends_as_the_database_says(page: Browser, system: System) -> None:
    press(page, "create", "never mind")
    eventually(lambda: badges(page)[0].startswith("Generating"), 30.0)
    page.run_now("document.querySelector('#list > .job .cancel').click()")
    eventually(lambda: badges(page)[0] in ("Canceled", "Ready"), 60.0)
    assert_complete(page, system)
