"""PostgreSQL, Valkey and gateways as processes of their own, and changes to bring through them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import psycopg
import redis
from psycopg.rows import dict_row

from edge.gateway import frames
from tests.py.support import schema
from tests.py.support.clusters import Cluster, Run
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually

SQL = Path(__file__).parents[1] / "sql" / "gateway.sql"
SECRET = "the secret of the benchmarks' session tokens"
TENANT = "00000000-0000-0000-0000-000000000001"
# So many streams are one user's: what a gateway keeps of users is part of its cost.
OF_A_USER = 10
# What Chromium sends with a fetch, beside what is needed.
BROWSER = (
    "Connection: keep-alive\r\n"
    'sec-ch-ua: "Chromium";v="156", "Not.A/Brand";v="24"\r\n'
    "sec-ch-ua-mobile: ?0\r\n"
    'sec-ch-ua-platform: "Linux"\r\n'
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/156.0.0.0 Safari/537.36\r\n"
    "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n"
    "Referer: http://127.0.0.1/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
    "Accept-Language: en-US,en;q=0.9\r\n"
)
# Where the load client writes the last event id.
CURSOR = 16 * "@"
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
FAST = {"shared_buffers": "256MB", "max_connections": "300"}


@dataclass(frozen=True)
class Gateway:
    """A gateway's process."""

    process: subprocess.Popen[bytes]
    port: int
    admin: int

    def memory(self) -> int:
        """Return the bytes that nobody else has."""
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        lines = [line.split() for line in text.splitlines() if line.startswith("Private_")]
        return sum(int(line[1]) for line in lines) * 1024

    def cpu(self) -> float:
        """Return the seconds of processor time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metric(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        url = f"http://127.0.0.1:{self.admin}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.split("{")[0].split(" ")[0] == name
        )


class Changes:
    """Makes changes and publishes them, over connections of its own."""

    def __init__(self, opened: ExitStack, conninfo: str, redis_url: str) -> None:
        self.database = opened.enter_context(
            psycopg.connect(conninfo, autocommit=True, row_factory=dict_row)
        )
        self.redis = opened.enter_context(redis.Redis.from_url(redis_url))
        row = self.database.execute("select aivedio.database_id() as id").fetchone()
        assert row
        self.channel = f"aivedio:{row['id']}:events"

    def emit(self, tasks: Sequence[uuid.UUID]) -> list[dict[str, Any]]:
        """Commit a change of each task and return the events as the bus would carry them."""
        rows = self.database.execute("select * from public.emit(%s)", [list(tasks)]).fetchall()
        return [
            {
                "event_id": row["event_id"],
                "prev_event_id": row["prev_event_id"],
                "event_type": row["event_type"],
                "aggregate_id": str(row["task_id"]),
                "aggregate_version": row["task_version"],
                "project_id": str(row["project_id"]),
                "public_payload": row["public_payload"],
            }
            for row in rows
        ]

    def publish(self, events: Sequence[dict[str, Any]]) -> None:
        """Publish events as the dispatcher does, each stamped with the moment."""
        pipeline = self.redis.pipeline(transaction=False)
        for event in events:
            stamped = {**event["public_payload"], "t": time.time_ns()}
            pipeline.publish(self.channel, frames.encode({**event, "public_payload": stamped}))
        pipeline.execute()


class World:
    """The servers of one benchmark."""

    def __init__(self, run: Run, opened: ExitStack, cluster: Cluster, redis_url: str) -> None:
        self.run = run
        self.cluster = cluster
        self.redis_url = redis_url
        self._opened = opened
        self.changes = self.beside(opened)
        self.gateways: list[Gateway] = []
        self.tasks: dict[uuid.UUID, uuid.UUID] = {}

    def beside(self, opened: ExitStack) -> Changes:
        """Return one more source of changes, for a thread of its own."""
        return Changes(opened, self.cluster.conninfo("bench"), self.redis_url)

    def seed(self, projects: int) -> None:
        """Make projects with a task each."""
        rows = self.changes.database.execute("select * from public.seed(%s)", [projects]).fetchall()
        self.tasks = {row["project"]: row["task"] for row in rows}
        self.changes.database.execute("vacuum analyze")

    def start(self, count: int = 1, *, port: int | None = None, **settings: str) -> list[Gateway]:
        """Start gateways and return them once they are ready; `port` is for a single one."""
        started = [self._start(port or free_port(), settings) for _ in range(count)]
        for gateway in started:
            eventually(partial(_ready, gateway), 60.0, "a gateway is ready")
        self.gateways += started
        return started

    def environment(self, **settings: str) -> dict[str, str]:
        """Return what processes of the project need to know."""
        return {
            **os.environ,
            "AIVEDIO_DATABASE_URL": self.cluster.url("bench"),
            "AIVEDIO_REDIS_URL": self.redis_url,
            "AIVEDIO_JWT_SECRET": SECRET,
            "AIVEDIO_LOCAL": "1",
            "AIVEDIO_LOG_LEVEL": "error",
            "AIVEDIO_DRAIN_SECONDS": "0",
            **settings,
        }

    def process(self, *command: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start one of the project's processes, which ends with the world."""
        process = subprocess.Popen(
            [sys.executable, "-m", "edge.cli.app", *command], env=self.environment(**settings)
        )
        self._opened.callback(process.wait)
        self._opened.callback(process.kill)
        return process

    def _start(self, port: int, settings: dict[str, str]) -> Gateway:
        admin = free_port()
        process = self.process(
            "gateway",
            AIVEDIO_GATEWAY_LISTEN=f"127.0.0.1:{port}",
            AIVEDIO_PUBLIC_URL=f"http://127.0.0.1:{port}",
            AIVEDIO_ADMIN_PORT=str(admin),
            **settings,
        )
        return Gateway(process, port, admin)

    def requests(
        self,
        projects: Sequence[uuid.UUID],
        *,
        socket: bool = False,
        group: int = 0,
        resume: bool = False,
    ) -> list[tuple[int, bytes]]:
        """
        Return a request for a stream of each project, in this order, as browsers send them.

        `resume`: with the last event id of the connection, which begins at 0.
        """
        cursor = f"Last-Event-ID: {CURSOR}\r\n" if resume else ""
        now = int(time.time())
        made = []
        for number, project in enumerate(projects):
            user = uuid.UUID(int=2**64 + group * 2**48 + number // OF_A_USER)
            claims = {
                "sub": str(user), "tenant": TENANT, "projects": [str(project)],
                "sid": f"s-{user}", "iat": now, "exp": now + 7200,
            }  # fmt: skip
            token = jwt.encode(claims, SECRET, algorithm="HS256")
            path = f"/projects/{project}/" + ("ws" if socket else "events")
            head = BROWSER.replace("Connection: keep-alive\r\n", UPGRADE) if socket else BROWSER
            made.append(
                (
                    group,
                    f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    f"Authorization: Bearer {token}\r\n{head}{cursor}\r\n".encode(),
                )
            )
        return made


@contextmanager
def world(projects: int) -> Iterator[World]:
    """Start the servers for the length of the block."""
    run = Run.begin()
    try:
        cluster = run.start_cluster("bench", 18, FAST)
        with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
            connection.execute("create database bench")
        schema.apply(cluster.conninfo("bench"))
        with psycopg.connect(cluster.conninfo("bench"), autocommit=True) as connection:
            connection.execute(SQL.read_bytes())
        url, _ = run.start_valkey("redis")
        with ExitStack() as opened:
            made = World(run, opened, cluster, url)
            made.seed(projects)
            yield made
    finally:
        run.end()


def _ready(gateway: Gateway) -> bool:
    assert gateway.process.poll() is None, "a gateway ended"
    try:
        url = f"http://127.0.0.1:{gateway.admin}/ready"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
