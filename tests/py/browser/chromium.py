"""Headless Chromium for tests: one browser a process, one page at a time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

BROWSER = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--window-size=1280,900",
)
WRAPPER = """
const done = arguments[arguments.length - 1];
const given = Array.prototype.slice.call(arguments, 0, -1);
(async () => { %s })().then(
  (value) => done({ value: value === undefined ? null : value }),
  (error) => done({ error: String(error && error.stack || error) }),
);
"""


class PageError(AssertionError):
    """The page's script threw."""


class Browser:
    """A Chromium and what tests do with it."""

    def __init__(self) -> None:
        options = Options()
        options.binary_location = str(BROWSER)
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        self.driver.set_script_timeout(60)
        self.driver.set_page_load_timeout(60)

    def quit(self) -> None:
        self.driver.quit()

    def run_now(self, script: str, *given: Any) -> Any:
        """Run the body of an async function in the page and return what it returns."""
        answer = self.driver.execute_async_script(WRAPPER % script, *given)
        if "error" in answer:
            raise PageError(answer["error"])
        return answer["value"]

    async def run(self, script: str, *given: Any) -> Any:
        """Do what `run_now` does, while the event loop goes on to serve the page."""
        return await asyncio.to_thread(self.run_now, script, *given)

    async def open(self, url: str) -> None:
        await asyncio.to_thread(self.driver.get, url)

    def complaints(self) -> list[str]:
        """Return what the console has said since the last call, refused requests left out."""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        texts = [str(entry["message"]) for entry in entries]
        return [text for text in texts if "Failed to load resource" not in text]

    async def screenshot(self, path: Path) -> None:
        await asyncio.to_thread(self.driver.save_screenshot, str(path))

    async def devtools(self, command: str, **arguments: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return await asyncio.to_thread(self.driver.execute_cdp_cmd, command, arguments)


def literal(value: object) -> str:
    """Return a Python value as JavaScript."""
    return json.dumps(value)
