"""
A gateway in memory, with every way to misbehave that a test asks for.

It keeps the contract of the real one: snapshots with the head of their project's stream, a stream
that goes on from a cursor or says `reset`, and events that name the one sent before them. A test
takes over a stream by putting a coroutine into `scripts`, and any other answer by putting one into
`answers`. demo_jobs.py serves the page on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
import uuid
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

STATIC = Path(__file__).resolve().parents[3] / "edge" / "gateway" / "static"
PROJECT = "0193d2c8-0000-7000-8000-00000000000a"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".ts": "text/plain",
}
MAX_REQUEST = 1 << 16


@dataclass(frozen=True)
class Request:
    """What a browser asked for."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at: float


@dataclass(frozen=True)
class Answer:
    """A finished answer."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: object, status: int = 200, **headers: str) -> Answer:
        kind = "application/json" if status < 400 else "application/problem+json"
        return cls(status, json.dumps(value).encode(), {"content-type": kind, **headers})

    @classmethod
    def problem(cls, status: int, detail: str = "no", code: str = "test", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = {"type": "about:blank", "title": "No", "status": status, "code": code}
        return cls.json({**body, "detail": detail, "trace_id": "trc_test"}, status, **named)


@dataclass(frozen=True)
class Event:
    """A committed change, as `task_events` holds it."""

    id: int
    prev: int
    payload: dict[str, Any]


class Stream:
    """One open event stream; what a script writes to."""

    def __init__(
        self, gateway: FakeGateway, request: Request, writer: asyncio.StreamWriter
    ) -> None:
        given = request.headers.get("last-event-id") or request.query.get("after")
        self.gateway = gateway
        self.request = request
        self.cursor = gateway.head if given is None else int(given)
        self.sent = self.cursor
        self.moved = asyncio.Event()
        self._writer = writer

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def ready(self, cursor: int | None = None, retry: int = 1000) -> None:
        self.sent = self.cursor if cursor is None else cursor
        data = json.dumps({"cursor": self.sent})
        await self.write(
            f"id: {self.sent}\nevent: ready\nretry: {retry}\ndata: {data}\n\n".encode()
        )

    async def reset(self, reason: str = "test") -> None:
        self.sent = self.gateway.head
        data = json.dumps({"reason": reason, "cursor": self.sent})
        await self.write(f"id: {self.sent}\nevent: reset\ndata: {data}\n\n".encode())

    async def database(self, word: str) -> None:
        """Say whether the database is away or back."""
        await self.write(f'event: status\ndata: {{"database":"{word}"}}\n\n'.encode())

    def frame(self, event: Event, prev: int | None = None) -> bytes:
        data = json.dumps({**event.payload, "prev": self.sent if prev is None else prev})
        return f"id: {event.id}\nevent: task.status\ndata: {data}\n\n".encode()

    async def event(self, event: Event, prev: int | None = None) -> None:
        data = self.frame(event, prev)
        self.sent = event.id
        await self.write(data)

    async def ping(self) -> None:
        await self.write(f": ping {int(time.time())}\n".encode())

    def cut(self) -> None:
        """Break the connection as a crash does: no end of the body, just gone."""
        self._writer.transport.abort()

    async def follow(self) -> None:
        """Go on as the real gateway does, until the browser leaves."""
        while True:
            self.moved.clear()
            for event in [event for event in self.gateway.events if event.id > self.sent]:
                await self.event(event)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.moved.wait(), self.gateway.ping_every)
                continue
            await self.ping()


Script = Callable[[Stream], Awaitable[None]]


async def faithful(stream: Stream) -> None:
    """Continue from the cursor if the chain does, or say `reset`."""
    gateway = stream.gateway
    later = [event for event in gateway.events if event.id > stream.cursor]
    if later[0].prev == stream.cursor if later else gateway.head == stream.cursor:
        await stream.ready()
    else:
        await stream.reset("unknown_cursor")
    await stream.follow()


class FakeGateway:
    """One project, its tasks and its events."""

    def __init__(self, ping_every: float = 0.2) -> None:
        self.ping_every = ping_every
        self.tasks: dict[str, dict[str, Any]] = {}
        self.events: list[Event] = []
        self.head = 0
        self.scripts: deque[Script] = deque()
        self.answers: dict[str, deque[Answer]] = defaultdict(deque)
        self.always: dict[str, Answer] = {}
        self.requests: list[Request] = []
        self.streams: set[Stream] = set()
        self.created: Callable[[str], None] = lambda _: None
        self.origin = ""
        self.me = Answer.json({"projects": [PROJECT]})
        self._keys: dict[str, str] = {}
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    # The project

    def add(self, prompt: str = "a fox in the snow", **fields: Any) -> str:
        """Create a task and its first event; the ids rise, as those of version 7 do."""
        task = str(uuid.UUID(int=(0x0193D2C8_0000_7000_8000 << 48) + len(self.tasks) + 1))
        self.tasks[task] = {
            "id": task,
            "task_version": 0,
            "status": "created",
            "stage": "created",
            "progress": None,
            "asset_id": None,
            "error": None,
            "attempt_no": 1,
            "cancel_requested": False,
            "created_at": _now(),
            "provider": "replicate",
            "model": "wan-video/wan-2.2-t2v-fast",
            "prompt": prompt,
        }
        self.change(task, **fields)
        return task

    def change(self, task: str, **fields: Any) -> Event:
        """Commit a change; `stage` follows `status` unless it is given."""
        row = self.tasks[task]
        if "status" in fields:
            fields = {"stage": fields["status"], "progress": None, **fields}
        row.update(fields)
        row["task_version"] += 1
        row["updated_at"] = _now()
        event = Event(self.head + 3, self.head, {})
        row["last_event_id"] = event.id
        constant = ("id", "last_event_id", "created_at", "provider", "model", "prompt")
        event.payload.update({"task_id": task, **row})
        for name in constant:
            event.payload.pop(name)
        self.events.append(event)
        self.head = event.id
        for stream in self.streams:
            stream.moved.set()
        return event

    def prune(self) -> None:
        """Drop every stored event, as retention does."""
        self.events.clear()

    def asked(self, suffix: str) -> list[Request]:
        return [request for request in self.requests if request.path.endswith(suffix)]

    @property
    def bothered(self) -> int:
        """How many requests there were that are not for files."""
        return sum(request.path.startswith("/projects/") for request in self.requests)

    def snapshot(self) -> list[dict[str, Any]]:
        return sorted(self.tasks.values(), key=lambda task: str(task["id"]), reverse=True)

    # HTTP

    @contextlib.asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[FakeGateway]:
        """Listen until left; `stop` and `listen` between them are a restart on the same port."""
        await self.listen(port)
        try:
            yield self
        finally:
            await self.stop()

    async def listen(self, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Close the port and break every connection."""
        assert self._server is not None
        self._server.close()
        for stream in list(self.streams):
            stream.cut()
        for handler in list(self._handlers):
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        try:
            request = await self._read(reader)
            if request is not None:
                self.requests.append(request)
                await self._answer(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(handler)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return None
        method, target, _ = head[0].split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
        }
        length = int(headers.get("content-length", "0"))
        assert length <= MAX_REQUEST
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        body = await reader.readexactly(length)
        return Request(method, unquote(url.path), query, headers, body, time.monotonic())

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        found = re.fullmatch(r"/projects/([^/]+)/(.+)", request.path)
        kind = found[2].split("/")[0] if found else "page"
        if request.method == "POST":
            kind = "post"
        if self.answers[kind]:
            answer = self.answers[kind].popleft()
        elif kind in self.always:
            answer = self.always[kind]
        elif found is None:
            answer = self.me if request.path == "/me" else self._file(request.path)
        elif found[1] != PROJECT:
            answer = Answer.problem(404, "There is no such project.", "unknown_project")
        elif kind == "events":
            await self._stream(request, reader, writer)
            return
        else:
            answer = self._task(request, found[2])
        lines = [f"HTTP/1.1 {answer.status} Test", f"content-length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "connection: close", "", ""]).encode() + answer.body)
        await writer.drain()

    async def _stream(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n"
            b"connection: close\r\n\r\n"
        )
        stream = Stream(self, request, writer)
        script = self.scripts.popleft() if self.scripts else faithful
        self.streams.add(stream)
        gone = asyncio.ensure_future(reader.read())
        playing = asyncio.ensure_future(script(stream))
        try:
            await asyncio.wait({gone, playing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.streams.discard(stream)
            for waiting in (gone, playing):
                waiting.cancel()
            await asyncio.gather(gone, playing, return_exceptions=True)

    def _task(self, request: Request, path: str) -> Answer:
        task = path.split("/")[1] if "/" in path else None
        if task is not None and task not in self.tasks:
            return Answer.problem(404, "There is no such task.", "unknown_task")
        if request.method == "POST":
            return self._command(request, path, task)
        if task is not None:
            return Answer.json({"task": self.tasks[task], "last_event_id": self.head})
        limit = int(request.query.get("limit", "100"))
        after = request.query.get("after", "g")
        page = [row for row in self.snapshot() if row["id"] < after][:limit]
        following = page[-1]["id"] if len(page) == limit else None
        return Answer.json({"tasks": page, "last_event_id": self.head, "next": following})

    def _command(self, request: Request, path: str, task: str | None) -> Answer:
        body = json.loads(request.body)
        if task is None:
            key = request.headers["idempotency-key"]
            if key not in self._keys:
                self._keys[key] = self.add(body["input"]["prompt"], model=body["model"])
                self.created(self._keys[key])
            task = self._keys[key]
        elif self.tasks[task]["status"] in ("ready", "failed", "canceled"):
            if path.endswith("cancel"):
                return Answer.problem(409, "This job has ended already.", "already_ended")
            self.change(task, status="created", error=None, asset_id=None)
            self.created(task)
        else:
            self.change(task, status="cancel_requested", cancel_requested=True)
        return Answer.json({"task": self.tasks[task], "last_event_id": self.head}, 201)

    def _file(self, path: str) -> Answer:
        if path == "/blank":
            page = b"<!doctype html><meta charset=utf-8><title>blank</title>"
            return Answer(200, page, {"content-type": "text/html"})
        name = "index.html" if path == "/" else path.removeprefix("/static/")
        file = STATIC / name
        if not file.is_file():
            return Answer.problem(404, "There is no such page.", "not_found")
        headers = {"content-type": KINDS[file.suffix], "cache-control": "no-store"}
        return Answer(200, file.read_bytes(), {**headers, "content-security-policy": CSP})


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
