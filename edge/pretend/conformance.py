"""
Puts a provider's profile to the test: the real processes, the real SQL, and a provider that
pretends.

The profile is used as it is shipped, but for where the provider is, how often it is asked and how
much at once. It is registered twice: under its own name with close polls, and under another with
polls so rare that only callbacks can tell. Everything runs in this process: the webhook edge, the
inbox, the poller, the submitter, and a pretend provider for each registration. Secrets are made
up, and set where the profile's references lead.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from edge import database, errors
from edge.buckets import Rate
from edge.gateway.frames import StoredEvent
from edge.intake import inbox, poll, submit, webhook
from edge.intake.flood import Flood
from edge.pretend import checks, provider, verdicts
from edge.pretend.dialects import DIALECTS
from edge.pretend.dialects.common import Account
from edge.pretend.samples import SAMPLES
from edge.pretend.studio import Studio
from edge.pretend.verdicts import Row, Tried

RARE = "_rare"
CLOSE_S = [0.15, 0.3]
NEVER_S = [3600, 3600]
LOOK_S = 0.1
# What was sent last may still be on its way through the inbox.
QUIET_LOOKS = 5
# All jobs come from one address within a moment.
GENEROUS = Rate(10_000, 100_000)


class CannotCheck(Exception):
    """A profile that cannot be put to the test; the text says why."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Mirror of the SQL type aivedio.event_page."""

    last_event_id: int
    events: list[StoredEvent] | None


@dataclass(frozen=True, slots=True)
class Applied:
    """Mirror of the SQL type aivedio.applied."""

    verdict: str
    task_id: uuid.UUID


async def check(
    name: str,
    profile: Mapping[str, Any],
    *,
    database_url: str,
    ports: tuple[int, int, int],
    within_s: float,
) -> list[Row]:
    """
    Return what a profile makes of everything that its provider may do.

    The database must be migrated, and nobody else may use it, or the ports. What is not as it
    should be after `within_s` counts as wrong. Raises `CannotCheck`.
    """
    if name not in DIALECTS or name not in SAMPLES:
        raise CannotCheck(f"There is no pretend provider that speaks {name}.")
    bench = _Bench(name, profile, database_url, ports)
    with _environment(bench.environment()):
        async with bench.running():
            return await bench.judge(within_s)


class _Bench:
    """The two registrations, their pretend providers, and what runs between them."""

    def __init__(
        self,
        name: str,
        profile: Mapping[str, Any],
        database_url: str,
        ports: tuple[int, int, int],
    ) -> None:
        self._name = name
        self._profile = profile
        self._database_url = database_url
        self._dialect = DIALECTS[name]
        self._webhook_port, *self._provider_ports = ports
        self._token = f"id-{secrets.token_hex(8)}", secrets.token_hex(32)
        self._secret = "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()
        self._studios: dict[str, Studio] = {}
        self._tenant, self._project = uuid.uuid4(), uuid.uuid4()

    @property
    def _names(self) -> tuple[str, str]:
        return self._name, self._name + RARE

    @property
    def _webhook(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._profile.get("webhook")
        return found

    @property
    def _own_address(self) -> bool:
        """Whether a submission says where its callbacks go."""
        return "{callback_url}" in json.dumps(self._profile.get("submit"))

    def environment(self) -> dict[str, str]:
        """Return the environment in which the profile's references lead to secrets."""
        wanted: dict[str, str] = {}
        webhook = self._webhook or {}
        for secret in (webhook.get("secrets") or [])[:1]:
            wanted[secret["ref"]] = self._secret
        wanted[webhook.get("audience", "")] = "https://callbacks.example"
        auth = self._profile.get("auth") or {}
        wanted[auth.get("id", "")] = self._token[0]
        wanted[auth.get("secret", "")] = self._token[1]
        return {
            reference.removeprefix("env:"): value
            for reference, value in wanted.items()
            if reference.startswith("env:")
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run everything inside the block."""
        url = f"http://127.0.0.1:{self._webhook_port}"
        flood = Flood(by_source=GENEROUS, refused=GENEROUS, challenges=GENEROUS)
        process = {"database_url": self._database_url}
        async with (
            database.connect(self._database_url, role="aivedio_operator", max_size=2) as operator,
            database.connect(self._database_url, role="aivedio_app", max_size=2) as app,
            database.connect(
                self._database_url,
                role="aivedio_gateway",
                max_size=2,
                composites={"stored_event": StoredEvent},
            ) as gateway,
        ):
            self._operator, self._app, self._gateway = operator, app, gateway
            await self._refuse_if_used()
            async with _Running() as parts:
                for alias in self._names:
                    await self._register(parts, alias, url)
                await parts.start(
                    webhook.run,
                    **process,
                    listen=f"127.0.0.1:{self._webhook_port}",
                    local=True,
                    flood=flood,
                )
                await parts.start(inbox.run, **process)
                await parts.start(poll.run, **process, worker="check")
                await parts.start(submit.run, **process, worker="check", callback_url=url)
                yield

    async def judge(self, within_s: float) -> list[Row]:
        """Make the jobs, wait until each is as it should be or time is up, and judge them."""
        calls_back = self._webhook is not None and bool(self._dialect.moments)
        wanted = checks.cases(
            self._dialect,
            calls_back=calls_back,
            own_address=self._own_address,
            cancels=self._profile.get("cancel") is not None,
        )
        tried = [Tried(case, f"check-{number}") for number, case in enumerate(wanted)]
        for one in tried:
            await self._create(one)
        try:
            async with asyncio.timeout(within_s):
                await self._watch(tried)
        except TimeoutError:
            pass
        rows = [verdicts.submissions(tried, self._studios)]
        if calls_back and self._dialect.signs:
            taken = all(verdicts.takes_callbacks(studio) for studio in self._studios.values())
            rows.append(Row("signature right", "taken" if taken else "refused", taken))
        return rows + [verdicts.row_of(one, self._studio(one)) for one in tried]

    async def _register(self, parts: _Running, alias: str, url: str) -> None:
        base = await self._pretend(parts, alias, f"{url}/callbacks/{alias}")
        interval = CLOSE_S if alias == self._name else NEVER_S
        changes: dict[str, Any] = {
            "base_url": base + urlsplit(self._profile["base_url"]).path,
            "local": True,
            "quota": {"provider": 1000, "model": 1000},
            "poll": dict(self._profile.get("poll") or {})
            | {"interval_s": dict.fromkeys(("submitted", "queued", "running"), interval)},
        }
        if (keys := (self._webhook or {}).get("jwks_url")) is not None:
            changes["webhook"] = {**(self._webhook or {}), "jwks_url": base + urlsplit(keys).path}
        try:
            await self._operator.value(
                "define_provider", p_name=alias, p_profile={**self._profile, **changes}
            )
        except errors.EdgeError as error:
            raise CannotCheck(
                f"The profile of {self._name} is refused: {error.detail or error}"
            ) from error

    async def _pretend(self, parts: _Running, alias: str, endpoint: str) -> str:
        """Start a pretend provider. Return where it is."""
        token = self._token[1]
        if (self._profile.get("auth") or {}).get("kind") == "basic":
            token = ":".join(self._token)
        account = Account(
            token,
            self._secret,
            None if self._own_address or self._webhook is None else endpoint,
            "https://callbacks.example",
        )
        port = self._provider_ports[self._names.index(alias)]
        await parts.start(
            provider.serve,
            host="127.0.0.1",
            port=port,
            dialect=self._dialect(account),
            opened=lambda studio: self._studios.update({alias: studio}),
        )
        return f"http://127.0.0.1:{port}"

    async def _refuse_if_used(self) -> None:
        status = await self._operator.value("pipeline_status")
        if status["tasks"]:
            raise CannotCheck("The database has tasks already: a check needs one of its own.")

    async def _create(self, one: Tried) -> None:
        sample = SAMPLES[self._name]
        text = f"a red kite pretend:{json.dumps(one.case.plan | {'key': one.key})}"
        alias = self._names[one.case.polls == "rare"]
        applied = await self._app.one(
            Applied,
            "create_task",
            p_tenant=self._tenant,
            p_project=self._project,
            p_user=self._tenant,
            p_provider=alias,
            p_model=sample.model,
            p_input=sample.input(text),
        )
        one.task = applied.task_id

    async def _watch(self, tried: list[Tried]) -> None:
        """Follow the project's events until every job is where it should be and stays there."""
        by_task = {one.task: one for one in tried}
        cursor = looks = 0
        while looks < QUIET_LOOKS:
            page = await self._gateway.one(
                EventPage, "read_events_after", p_project=self._project, p_cursor=cursor
            )
            for event in page.events or ():
                cursor = event.event_id
                verdicts.note(by_task[event.task_id], event.public_payload)
            for one in tried:
                if one.case.cancel & set(one.statuses) and not one.asked_to_cancel:
                    one.asked_to_cancel = True
                    await self._cancel(one)
            done = all(verdicts.is_done(one, self._studio(one)) for one in tried)
            looks = looks + 1 if done else 0
            await asyncio.sleep(LOOK_S)

    async def _cancel(self, one: Tried) -> None:
        await self._app.one(
            Applied,
            "request_cancel",
            p_tenant=self._tenant,
            p_project=self._project,
            p_task=one.task,
            p_user=self._tenant,
        )

    def _studio(self, one: Tried) -> Studio:
        return self._studios[self._names[one.case.polls == "rare"]]


class _Running:
    """Processes that run in this one; each is ready before the next is started."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> _Running:
        """Start nothing yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop everything, the last first."""
        self._stopping.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def start(self, run: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Start one and wait until it is ready. Raises what it fails with."""
        ready = asyncio.Event()

        def told(is_ready: bool) -> None:
            if is_ready:
                ready.set()

        task = asyncio.ensure_future(run(stopping=self._stopping, ready=told, **arguments))
        self._tasks.append(task)
        waiting = asyncio.ensure_future(ready.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()
            raise CannotCheck("A process ended before it was ready.")


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
