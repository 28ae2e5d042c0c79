"""The part of `aivedio up` that runs while the servers do: the processes, and who uses them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import signal
import sys
import webbrowser
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edge import database, errors
from edge.cli import embedded, layout, logfiles, operator_link
from edge.cli.display import Display
from edge.cli.fleet import Fleet
from edge.cli.folder import Folder
from edge.cli.layout import Places
from edge.cli.settings import Settings

_PROVIDER = "replicate"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line of `aivedio up` says."""

    data: Path | None
    ephemeral: bool
    port: int | None
    once: bool
    jobs: int
    faults: Literal["all", "none"]
    timeout: float


@dataclass(slots=True)
class Session:
    """One run of all processes, on databases that are up and migrated."""

    options: Options
    data: Folder
    where: Places
    servers: embedded.Servers | None
    display: Display

    async def run(self, settings: Settings) -> int:
        """Start everything, do what the options ask for, stop everything; return the status."""
        stopping = asyncio.Event()
        _own_signals(stopping)
        async with (
            database.connect(self.where.database_url, role="aivedio_operator", max_size=1) as db,
            self._pretended(db),
        ):
            parts = layout.parts(self.where, attended=not self.options.once)
            fleet = Fleet(
                parts,
                layout.environment(settings, self.data, self.where),
                self.data.logs,
                self.data.lock,
                self.display.say,
            )
            try:
                self.display.step(f"Starting {len(parts)} processes")
                if not await _until(stopping, fleet.start(), *self._watch()):
                    return _INTERRUPTED if self.options.once else 0
                self.display.done()
                if self.options.once:
                    return await self._once(db, fleet, stopping)
                await self._serve(db, fleet, stopping)
                return 0
            except BaseException:
                self.display.broke()
                raise
            finally:
                self.display.step("Stopping the processes")
                await fleet.stop()
                self.display.done()

    def _watch(self) -> list[Coroutine[Any, Any, None]]:
        watches = [logfiles.keep_short(self.data.logs)]
        if self.servers:
            watches.append(embedded.watch(self.servers, self.display.say))
        return watches

    async def _serve(self, db: database.Database, fleet: Fleet, stopping: asyncio.Event) -> None:
        link = await self._login_link(db)
        self.display.say(f"\n  Open     {link}\n  Operate  {await self._operator_link(db)}\n")
        self.display.say("  Each works once, for ten minutes.")
        if sys.stdout.isatty() and _has_browser():
            await asyncio.to_thread(webbrowser.open, link)
        asking = []
        if sys.stdin.isatty():
            self.display.say("  Enter makes new links, Ctrl-C stops everything.")
            asking = [self._links_on_enter(db)]
        await _until(stopping, fleet.tend(), *self._watch(), *asking)
        self.display.say("")

    async def _once(self, db: database.Database, fleet: Fleet, stopping: asyncio.Event) -> int:
        from edge.pretend import script

        self.display.step(f"Running {self.options.jobs} jobs, faults: {self.options.faults}")
        play = asyncio.ensure_future(
            script.run(
                gateway_url=self.where.public_url,
                session=script.Session(login_url=await self._login_link(db)),
                provider_url=self.where.provider_url,
                jobs=self.options.jobs,
                faults=self.options.faults,
                timeout_s=self.options.timeout,
            )
        )
        if not await _until(stopping, play, fleet.tend(), *self._watch()):
            return _INTERRUPTED
        report = play.result()
        if report.failures:
            self.display.broke()
        self.display.done()
        sys.stdout.write(json.dumps(report.as_json()) + "\n")
        sys.stdout.flush()
        for failure in report.failures:
            self.display.say(f"  ✗ {failure}")
        return 1 if report.failures else 0

    @asynccontextmanager
    async def _pretended(self, db: database.Database) -> AsyncIterator[None]:
        """Point the provider's profile at the pretend provider, where there is one."""
        if not self.where.pretend:
            yield
            return
        from edge.pretend import provider

        await _override(db, provider.profile_override(self.where.provider_url))
        try:
            yield
        finally:
            # A profile that is left behind must not send real jobs to a port of this machine.
            try:
                await _override(db, {})
            except errors.EdgeError:
                self.display.say(f"Provider {_PROVIDER} still points at {self.where.provider_url}.")

    async def _login_link(self, db: database.Database) -> str:
        """Make a link that logs its first user in; the database keeps only its token's hash."""
        token = secrets.token_urlsafe(32)
        own = self.data.secrets
        who = {"p_tenant": own.tenant_id, "p_project": own.project_id, "p_user": own.user_id}
        await db.value("add_member", **who, p_role="operator")
        await db.value(
            "issue_token",
            p_purpose="login",
            p_token_hash=hashlib.sha256(token.encode()).digest(),
            **who,
            p_session=secrets.token_urlsafe(12),
            p_claims={"projects": [own.project_id]},
        )
        return f"{self.where.public_url}/login?token={token}"

    async def _operator_link(self, db: database.Database) -> str:
        """Make a link to the operators' page for whoever runs this."""
        return await operator_link.make(
            db, self.where.console_url, "act", operator_link.somebody("aivedio up")
        )

    async def _links_on_enter(self, db: database.Database) -> None:
        loop = asyncio.get_running_loop()
        typed = asyncio.Event()
        loop.add_reader(0, typed.set)
        try:
            while True:
                await typed.wait()
                typed.clear()
                if not os.read(0, 4096):
                    break
                self.display.say(f"  Open     {await self._login_link(db)}")
                self.display.say(f"  Operate  {await self._operator_link(db)}")
        finally:
            loop.remove_reader(0)
        await asyncio.Event().wait()


_INTERRUPTED = 128 + signal.SIGINT


async def _until(stopping: asyncio.Event, main: Any, *beside: Any) -> bool:
    """
    Await `main`, but not past `stopping`; answer whether it came to its end.

    What runs `beside` it may only fail: its failure, too, ends the wait and is raised.
    """
    told = asyncio.ensure_future(stopping.wait())
    work = [asyncio.ensure_future(each) for each in (main, *beside)]
    try:
        await asyncio.wait({told, *work}, return_when=asyncio.FIRST_COMPLETED)
        for each in work:
            if each.done():
                each.result()
        return bool(work[0].done())
    finally:
        for task in (told, *work):
            task.cancel()
        await asyncio.wait({told, *work})


async def _override(db: database.Database, override: dict[str, Any]) -> None:
    await db.value(
        "override_provider",
        p_name=_PROVIDER,
        p_override=override,
        p_who="aivedio up",
        p_why="the pretend provider stands in" if override else "the pretend provider is gone",
    )


def _has_browser() -> bool:
    return sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def _own_signals(stopping: asyncio.Event) -> None:
    def on_signal(number: signal.Signals) -> None:
        if stopping.is_set():
            # The children and servers see our end of their pipes close.
            os._exit(128 + number)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
