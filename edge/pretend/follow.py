"""
A small SSE client that keeps account: what it saw, when, and whether anything was left out.

The time between commit and client is the moment a chunk was read minus the event's `updated_at`.
PostgreSQL wrote that on the clock of this same machine, inside the transaction, so the number
includes the rest of the transaction and its commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
import orjson

from edge import logs
from edge.backoff import Backoff
from edge.pretend.api import BadAnswer, Gateway

logger = logs.get(__name__)

MAX_LINE = 64 * 1024
TERMINAL = frozenset({"ready", "failed", "canceled"})


@dataclass(frozen=True, slots=True)
class Frame:
    """One complete block of a text/event-stream."""

    event: str
    id: str | None
    data: str


class Parser:
    """Cuts a stream of bytes into frames; a block that is not finished waits for the rest."""

    def __init__(self) -> None:
        self._rest = b""
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take in some bytes and return the frames that they complete."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError("a line of the stream is too long")
        frames = [self._line(line.removesuffix(b"\r").decode()) for line in lines]
        return [frame for frame in frames if frame is not None]

    def _line(self, line: str) -> Frame | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._event = value
            case "id":
                self._id = value
            case "data":
                self._data.append(value)
        return None

    def _dispatch(self) -> Frame | None:
        frame = Frame(self._event or "message", self._id, "\n".join(self._data))
        empty = not self._data and self._id is None
        self._event, self._id, self._data = "", None, []
        return None if empty else frame


@dataclass(frozen=True, slots=True)
class Seen:
    """One event as it came off the stream."""

    event_id: int
    task_id: str
    version: int
    payload: dict[str, Any]
    latency_s: float | None


@dataclass(slots=True)
class Account:
    """Everything a follower saw, in order, and every place where the chain did not hold."""

    events: dict[int, Seen] = field(default_factory=dict)
    latest: dict[str, Seen] = field(default_factory=dict)
    versions: dict[str, set[int]] = field(default_factory=dict)
    first_cursor: int | None = None
    cursor: int | None = None
    # Versions that a replay may have left out: progress that a later event had overtaken.
    skipped: dict[str, set[int]] = field(default_factory=dict)
    breaks: list[str] = field(default_factory=list)
    repeats: int = 0
    resets: int = 0
    reconnects: int = 0
    _resumed_at: float | None = None

    def mere_progress(self) -> set[int]:
        """Return the ids of events that changed nothing but progress and were overtaken."""
        found: set[int] = set()
        before: dict[str, Seen] = {}
        for seen in self.events.values():
            earlier = before.get(seen.task_id)
            if earlier is not None and _standing(earlier) == _standing(seen):
                found.add(seen.event_id)
            before[seen.task_id] = seen
        return found - {seen.event_id for seen in self.latest.values()}

    def take(self, frame: Frame, now: float) -> bool:
        """Enter a frame that was read at `now`; answer whether it was a new event."""
        match frame.event:
            case "ready":
                self._begin(int(_data(frame)["cursor"]), now)
            case "reset":
                self.resets += 1
                self.breaks.append(f"reset: {_data(frame).get('reason')}")
                self.cursor = int(_data(frame)["cursor"])
            case "task.status":
                return self._event(frame, now)
        return False

    def _begin(self, cursor: int, now: float) -> None:
        if self.first_cursor is None:
            self.first_cursor = cursor
        else:
            self._resumed_at = now
            if cursor != self.cursor:
                self.breaks.append(f"reconnected at {cursor}, not at {self.cursor}")
        self.cursor = cursor

    def _event(self, frame: Frame, now: float) -> bool:
        payload = _data(frame)
        event_id = int(frame.id or "0")
        if self.cursor is not None and event_id <= self.cursor:
            self.repeats += 1
            return False
        if payload.get("prev") != self.cursor:
            self.breaks.append(f"{event_id} follows {payload.get('prev')}, not {self.cursor}")
        self.cursor = event_id
        seen = Seen(
            event_id,
            str(payload["task_id"]),
            int(payload["task_version"]),
            payload,
            _latency(payload, now),
        )
        self.events[event_id] = seen
        versions = self.versions.setdefault(seen.task_id, set())
        if versions and seen.version <= max(versions):
            self.breaks.append(f"{event_id} takes task {seen.task_id} back to {seen.version}")
        if self._is_replay(seen, now):
            skipped = range(max(versions, default=0) + 1, seen.version)
            self.skipped.setdefault(seen.task_id, set()).update(skipped)
        versions.add(seen.version)
        self.latest[seen.task_id] = seen
        return True

    def _is_replay(self, seen: Seen, now: float) -> bool:
        """Tell whether an event is older than the connection that brought it."""
        if self._resumed_at is None or seen.latency_s is None:
            return False
        return now - seen.latency_s < self._resumed_at


class Follower:
    """Follows a project over SSE until it is stopped, reconnecting from its cursor."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.time) -> None:
        self.account = Account()
        self.connected = asyncio.Event()
        self._gateway = gateway
        self._clock = clock
        self._news = asyncio.Condition()

    async def run(self) -> None:
        """Follow until cancelled; a stream that ends is opened again after a growing pause."""
        backoff = Backoff(first=0.1, cap=2.0)
        while True:
            try:
                async with aclosing(read(self._gateway, self.account.cursor)) as reads:
                    async for frames in reads:
                        await self._take(frames)
                        backoff.reset()
            except (httpx.HTTPError, BadAnswer) as error:
                logger.warning("event stream broke", error=type(error).__name__)
            except (ValueError, KeyError) as error:
                self.account.breaks.append(f"a frame could not be read: {error!r}")
            self.account.reconnects += 1
            await asyncio.sleep(backoff.next())

    async def until(self, task: str, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for an event of `task` that satisfies `true`, and return its data."""
        async with self._news:
            await self._news.wait_for(
                lambda: task in self.account.latest and true(self.account.latest[task].payload)
            )
            return self.account.latest[task].payload

    async def quiet(self, seconds: float) -> None:
        """Wait until no event has come for so long."""
        async with self._news:
            while True:
                try:
                    async with asyncio.timeout(seconds):
                        await self._news.wait()
                except TimeoutError:
                    return

    async def _take(self, frames: list[Frame]) -> None:
        now = self._clock()
        # A list: every frame must be entered, whatever the ones before it were.
        if any([self.account.take(frame, now) for frame in frames]):
            async with self._news:
                self._news.notify_all()
        if self.account.first_cursor is not None:
            self.connected.set()


async def read(gateway: Gateway, cursor: int | None) -> AsyncGenerator[list[Frame], None]:
    """Yield the frames of one connection as they come, together those of one read."""
    parser = Parser()
    async with gateway.events(cursor) as response:
        async for chunk in response.aiter_raw():
            if frames := parser.feed(chunk):
                yield frames


def _standing(seen: Seen) -> tuple[Any, ...]:
    return tuple(seen.payload.get(name) for name in ("status", "stage", "attempt_no"))


def _data(frame: Frame) -> dict[str, Any]:
    data = orjson.loads(frame.data)
    if not isinstance(data, dict):
        raise ValueError("an event's data is not an object")
    return data


def _latency(payload: dict[str, Any], now: float) -> float | None:
    stamp = payload.get("updated_at")
    if not isinstance(stamp, str):
        return None
    return now - datetime.fromisoformat(stamp).timestamp()
