"""
A gateway and a provider in one small application, honest or lying on request.

It reaches the end that each scenario asks for by reading the answer sheet, which a real system
cannot do; the tests of the scripted run make it lie and expect to be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from edge.pretend.scenarios import ALL, Scenario
from tests.py.pretend.conftest import Server
from tests.py.support.ports import free_port

PROJECT = "0198c0de-0000-7000-8000-000000000001"


@dataclass
class Task:
    id: str
    key: str
    scenario: Scenario
    state: dict[str, Any] = field(default_factory=dict)
    cancels: int = 0


@dataclass
class Lies:
    """What the system gets wrong; the default is nothing."""

    hide_version: int | None = None
    wrong_end: bool = False
    stale_snapshot: bool = False
    break_chain: bool = False
    submissions: int = 0
    take_forged: bool = False
    forget_fault: str | None = None
    never_end: bool = False
    cut_stream_after: int | None = None


@dataclass
class System:
    """The application's state: tasks, the event log, and what it lies about."""

    lies: Lies = field(default_factory=Lies)
    url: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    streams: int = 0

    async def emit(self, task: Task, status: str, **fields: Any) -> None:
        version = int(task.state.get("task_version", 0)) + 1
        task.state |= {
            "task_id": task.id,
            "task_version": version,
            "status": status,
            "stage": status,
            "progress": None,
            "asset_id": None,
            "error": None,
            "attempt_no": task.state.get("attempt_no", 1),
            "updated_at": datetime.now(UTC).isoformat(),
            **fields,
        }
        async with self.news:
            previous = self.log[-1]["event_id"] if self.log else 0
            self.log.append(
                {"event_id": previous + 2, "prev": previous, "payload": dict(task.state)}
            )
            self.news.notify_all()

    async def end(self, task: Task) -> None:
        if self.lies.never_end:
            return
        status = task.scenario.end
        if self.lies.wrong_end:
            status = "failed" if status == "ready" else "ready"
        await self.emit(
            task,
            status,
            asset_id="ast_1" if status == "ready" else None,
            error={"code": task.scenario.error} if task.scenario.error else None,
        )

    # the gateway

    async def login(self, request: Request) -> Response:
        response = RedirectResponse(f"/?project={PROJECT}", 303)
        response.set_cookie("aivedio_session", "s", httponly=True)
        return response

    async def create(self, request: Request) -> Response:
        assert request.cookies["aivedio_session"] == "s"
        assert request.headers["origin"] == self.url
        body = await request.json()
        key = body["input"]["pretend"]["key"]
        number = int(key.rsplit("-", 1)[1])
        task = Task(str(uuid4()), key, ALL[(number - 1) % len(ALL)])
        self.tasks[task.id] = task
        await self.emit(task, "created")
        await self.emit(task, "running")
        match task.scenario.action:
            case "watch":
                await self.end(task)
            case "retry":
                await self.emit(task, "failed", error={"code": "provider_failed"})
        return JSONResponse({"task": {"id": task.id}}, 201)

    async def command(self, request: Request) -> Response:
        task = self.tasks[request.path_params["task"]]
        if request.path_params["command"] == "retry":
            assert (await request.json())["reason"]
            await self.emit(task, "created", attempt_no=2)
        else:
            task.cancels += 1
            await self.emit(task, "cancel_requested")
        await self.end(task)
        return JSONResponse({"task": {"id": task.id}})

    async def task(self, request: Request) -> Response:
        task = self.tasks[request.path_params["task"]]
        state = dict(task.state)
        if self.lies.stale_snapshot:
            state |= {"status": "running", "asset_id": None, "error": None}
        return JSONResponse({"task": state | {"id": task.id}})

    async def list(self, request: Request) -> Response:
        return JSONResponse({"tasks": [], "last_event_id": self.log[-1]["event_id"]})

    async def events(self, request: Request) -> Response:
        given = request.headers.get("last-event-id")
        self.streams += 1
        live = self.streams == 1
        head = self.log[-1]["event_id"] if self.log else 0
        return StreamingResponse(
            self._frames(head if given is None else int(given), live),
            media_type="text/event-stream",
        )

    async def _frames(self, cursor: int, live: bool) -> AsyncIterator[bytes]:
        yield b': hello\n\nevent: ready\nid: %d\nretry: 9\ndata: {"cursor":%d}\n\n' % (
            cursor,
            cursor,
        )
        prev, sent = cursor, 0
        while True:
            async with self.news:
                while not (fresh := [one for one in self.log if one["event_id"] > cursor]):
                    await self.news.wait()
            for event in fresh:
                cursor = event["event_id"]
                if live and event["payload"]["task_version"] == self.lies.hide_version:
                    continue
                told = prev - 1 if live and self.lies.break_chain else prev
                data = orjson.dumps(event["payload"] | {"prev": told})
                yield b"id: %d\nevent: task.status\ndata: %b\n\n" % (cursor, data)
                prev, sent = cursor, sent + 1
                if live and sent == self.lies.cut_stream_after:
                    return

    # the provider

    async def report(self, request: Request) -> Response:
        kinds = {str(fault): 1 for task in self.tasks.values() for fault in task.scenario.faults}
        if self.lies.forget_fault is not None:
            kinds.pop(self.lies.forget_fault, None)
        return JSONResponse({"faults": kinds})

    async def jobs(self, request: Request) -> Response:
        key = request.query_params["key"]
        task = next((task for task in self.tasks.values() if task.key == key), None)
        if task is None:
            return JSONResponse({"submissions": 0, "jobs": []})
        deliveries = [self._delivery("completed", True, None, 204)]
        if "forged" in task.scenario.faults:
            answer = 204 if self.lies.take_forged else 401
            deliveries.append(self._delivery("forged", False, "forged", answer))
        job = {
            "phase": "running" if self.lies.never_end else "succeeded",
            "over": True,
            "polls": 1,
            "cancels": task.cancels,
            "deliveries": deliveries,
        }
        submissions = self.lies.submissions or task.scenario.submissions
        return JSONResponse({"submissions": submissions, "jobs": [job]})

    @staticmethod
    def _delivery(moment: str, retried: bool, fault: str | None, answer: int) -> dict[str, Any]:
        return {
            "callback_id": f"msg_{moment}",
            "moment": moment,
            "retried": retried,
            "fault": fault,
            "answer": answer,
            "error": None,
        }


@asynccontextmanager
async def running(lies: Lies) -> AsyncIterator[System]:
    """Serve the fake in this event loop."""
    system = System(lies)
    port = free_port()
    system.url = f"http://127.0.0.1:{port}"
    base = "/projects/{project}"
    app = Starlette(
        routes=[
            Route("/login", system.login),
            Route(f"{base}/tasks", system.create, methods=["POST"]),
            Route(f"{base}/tasks", system.list),
            Route(f"{base}/tasks/{{task}}", system.task),
            Route(f"{base}/tasks/{{task}}/{{command}}", system.command, methods=["POST"]),
            Route(f"{base}/events", system.events),
            Route("/pretend/report", system.report),
            Route("/pretend/jobs", system.jobs),
        ]
    )
    config = uvicorn.Config(
        app, port=port, log_config=None, lifespan="off", timeout_graceful_shutdown=0
    )
    async with Server(config).running():
        yield system
