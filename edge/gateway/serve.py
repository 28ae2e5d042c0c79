"""
The gateway's process: start, serve, drain.

    start   pools and hubs; the feed and the lookout begin; the port opens; ready once the first
            reads may be made
    serve   PostgreSQL or Redis may go and come back: streams stay open, and while PostgreSQL is
            away they are told so, and newcomers get 503
    drain   not ready at once; newcomers are still taken in for `drain_seconds`, since load
            balancers learn it late; then none, and the streams are sent away, spread over as long
            again; then uvicorn ends, and so does this process
"""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import orjson
import psycopg
import uvicorn

from edge import errors, logs
from edge.backoff import Backoff, pause
from edge.gateway import pages, store
from edge.gateway.access import Access
from edge.gateway.app import Gateway
from edge.gateway.feed import Feed
from edge.gateway.hubs import Hubs
from edge.gateway.keys import Keys
from edge.gateway.lookout import Lookout
from edge.gateway.places import Caps
from edge.gateway.registry import Registry
from edge.gateway.streams import Streams
from edge.gateway.takeover import HttpProtocol
from edge.http_server import Server, raise_descriptor_limit
from edge.intake.origin import Network
from edge.listener import Listener, follow

logger = logs.get(__name__)

BACKLOG = 4096
SEND_BUFFER = 32 * 1024
# A peer that vanished with unread data is given up by the kernel after so long.
USER_TIMEOUT_MS = 60_000
# At start, how long to wait for Redis before reads are made without it.
SUBSCRIBE_WITHIN_S = 2.0
UVICORN_ENDS_WITHIN_S = 5


async def run(
    *,
    database_url: str,
    redis_url: str,
    host: str,
    port: int,
    public_url: str,
    keys: Keys,
    proxies: Sequence[Network] = (),
    local: bool = False,
    drain_seconds: float = 5.0,
    directed: bool = False,
    caps: Caps | None = None,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
) -> None:
    """Serve until `stopping`, then drain and return."""
    raise_descriptor_limit()
    listening = listen(host, port)
    async with store.connect(database_url) as facts:
        hubs = Hubs(facts)
        streams = Streams(hubs, facts, caps)
        gateway = Gateway(facts, Access(keys, facts, public_url), hubs, streams, proxies)
        secure = urlsplit(public_url).scheme == "https" or not local
        server = Server(
            uvicorn.Config(
                gateway.app(pages.Pages(), secure_cookie=secure),
                http=HttpProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=UVICORN_ENDS_WITHIN_S,
            )
        )
        background = _Background()
        ended = asyncio.Event()
        try:
            serving = background.start("serving", server.serve([listening]))
            background.start("heartbeats", streams.beat(ended))
            background.start("sweep", streams.sweep(ended))
            background.start("recheck", streams.recheck(ended))
            background.start("bell", _hear_revocations(database_url, streams, ended))
            lookout = Lookout(hubs, facts, streams.tell)
            background.start("lookout", lookout.run(ended))
            background.start("loop watch", lookout.mind_the_loop(ended))
            background.start("silence watch", lookout.mind_the_silence(ended))
            background.start(
                "feed",
                _feed(facts, redis_url, hubs, lookout, directed, ready, stopping, ended),
            )
            await background.until(stopping)
            ready(False)
            await _drain(streams, drain_seconds)
            server.should_exit = True
            await asyncio.wait({serving}, timeout=UVICORN_ENDS_WITHIN_S + 2)
        finally:
            ended.set()
            server.should_exit = True
            await background.close()
            await gateway.close()
            await keys.close()
            await hubs.close()
            listening.close()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket whose connections inherit small buffers and a deadline."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # A reader that reads nothing would otherwise take megabytes of the kernel's memory.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.bind((host, port))
    listening.setblocking(False)
    return listening


class _Background:
    """The tasks of the process. One that ends before its time ends the process."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        return task

    async def until(self, stopping: asyncio.Event) -> None:
        """Wait for `stopping`, or raise because a task ended."""
        told = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({told, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done() and not stopping.is_set():
                    task.result()
                    raise RuntimeError(f"{task.get_name()} ended")
        finally:
            told.cancel()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _feed(
    facts: store.Store,
    redis_url: str,
    hubs: Hubs,
    lookout: Lookout,
    directed: bool,
    ready: Callable[[bool], None],
    stopping: asyncio.Event,
    ended: asyncio.Event,
) -> None:
    """Find out the channels' names, subscribe, report ready, and go on listening."""
    backoff = Backoff(0.1, 2.0)
    while True:
        try:
            identity = str(await facts.database_id())
            break
        except errors.EdgeError as error:
            logger.warning("database not there yet", kind=type(error).__name__, code=error.code)
            if await pause(backoff.next(), ended):
                return
    subscribed = asyncio.Event()
    registry = Registry(redis_url, identity) if directed else None
    if registry is not None:
        hubs.before_read = registry.ensure

    def on_confirmed() -> None:
        if registry is not None:
            registry.forget()
        hubs.allow_reads()
        subscribed.set()
        lookout.look()

    async def report() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(SUBSCRIBE_WITHIN_S):
                await subscribed.wait()
        # Without Redis the lookout alone brings events, a little late: better than nothing.
        hubs.allow_reads()
        if not stopping.is_set():
            # What is there now stays: a full collection need not walk it again and again.
            gc.collect()
            gc.freeze()
            ready(True)

    beside = [asyncio.create_task(report())]
    if registry is not None:
        followed = registry.run(lambda: [hub.project for hub in hubs.all], ended)
        beside.append(asyncio.create_task(followed))
    own_channel = registry.channel if registry is not None else None
    try:
        await Feed(redis_url, identity, hubs, on_confirmed, own_channel).run(ended)
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        if registry is not None:
            await registry.close()


async def _hear_revocations(database_url: str, streams: Streams, ended: asyncio.Event) -> None:
    async def heard(note: psycopg.Notify) -> None:
        with suppress(orjson.JSONDecodeError):
            said = orjson.loads(note.payload)
            if isinstance(said, dict) and said.get("kind") == "revoked":
                streams.doubt()

    async def refresh() -> None:
        streams.doubt()

    listener = Listener(database_url, role="aivedio_gateway", channels=["aivedio_control"])
    await follow(listener, heard=heard, refresh=refresh, stopping=ended)


async def _drain(streams: Streams, drain_seconds: float) -> None:
    if len(streams):
        logger.info("draining", streams=len(streams), seconds=drain_seconds)
    await asyncio.sleep(drain_seconds)
    await streams.drain(drain_seconds)
