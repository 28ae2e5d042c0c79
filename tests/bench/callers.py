"""
Senders of callbacks that cost little themselves: requests are made and signed before they are sent.

They speak just enough HTTP: a request in one write, an answer with content-length, on a connection
that is kept until the server ends it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import orjson
import uvloop

FLOOD_PER_SECOND = 1_000
FLOOD_SOURCES = 20

KEY = b"a key of twenty-four byte"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
HOST = "127.0.0.1"


def callbacks(prefix: str, count: int, *, forged: bool = False) -> Iterator[bytes]:
    """Yield requests as a provider sends them, each about a job of its own."""
    for n in range(count):
        event = f"{prefix}-{n}"
        said = {
            "id": f"job-{event}",
            "status": "processing",
            "input": {"prompt": "a harbour at dawn, slow camera, no people"},
            "logs": "\n".join(f" {percent}%|#" for percent in range(0, 100, 10)),
            "output": None,
            "created_at": "2026-06-24T03:10:00.000Z",
        }
        body = orjson.dumps(said)
        at = int(time.time())
        key = b"another" if forged else KEY
        mac = hmac.digest(key, f"{event}.{at}.".encode() + body, hashlib.sha256)
        yield (
            b"POST /callbacks/replicate HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\n"
            b"user-agent: bench\r\nwebhook-id: %b\r\nwebhook-timestamp: %d\r\n"
            b"webhook-signature: v1,%b\r\ncontent-length: %d\r\n\r\n%b"
            % (HOST.encode(), event.encode(), at, base64.b64encode(mac), len(body), body)
        )


@dataclass
class Answers:
    """What a load of callbacks heard: how often each status (0: none), and each one's seconds."""

    statuses: dict[int, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def add(self, status: int, began: float) -> None:
        """Note an answer."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.seconds.append(time.perf_counter() - began)

    def percentile(self, share: float) -> float:
        """Return the seconds within which this share was answered."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Caller(asyncio.Protocol):
    """One connection, with one request under way at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._heard: asyncio.Future[int] | None = None
        self._buffer = b""

    @classmethod
    async def connect(cls, port: int, source: str = HOST) -> Caller:
        """Open a connection from an address of this machine."""
        loop = asyncio.get_running_loop()
        _, caller = await loop.create_connection(cls, HOST, port, local_addr=(source, 0))
        return caller

    @property
    def is_open(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None

    async def send(self, request: bytes) -> int:
        """Send a request; return its answer's status, 0 if the connection ended before."""
        if self._transport is None:
            return 0
        self._heard = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._heard

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Read until an answer is complete."""
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        _, _, length = head.lower().partition(b"content-length:")
        if length and len(rest) < int(length.split(b"\r\n", 1)[0]):
            return
        self._buffer = b""
        if b"connection: close" in head.lower():
            self.close()
            self._transport = None
        self._answer(int(head[9:12]))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._transport = None
        self._answer(0)

    def _answer(self, status: int) -> None:
        if self._heard is not None and not self._heard.done():
            self._heard.set_result(status)


async def in_turn(port: int, requests: Sequence[bytes], connections: int) -> Answers:
    """Send all requests over so many connections, each as fast as it is answered."""
    answers = Answers()
    left = iter(requests)

    async def work() -> None:
        caller = await Caller.connect(port)
        for request in left:
            began = time.perf_counter()
            answers.add(await caller.send(request), began)
            if not caller.is_open:
                caller = await Caller.connect(port)
        caller.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return answers


async def until_acknowledged(
    port: int, requests: Sequence[bytes], connections: int, within: float
) -> Answers:
    """
    Send all requests, spread evenly over `within` seconds, each again until it is acknowledged.

    A request's seconds are those from the moment at which it was due to its acknowledgement.
    """
    answers = Answers()
    began = time.perf_counter()
    queue: asyncio.PriorityQueue[tuple[float, int]] = asyncio.PriorityQueue()
    for n in range(len(requests)):
        queue.put_nowait((began + n * within / len(requests), n))
    due = [began + n * within / len(requests) for n in range(len(requests))]
    left = len(requests)

    async def work() -> None:
        nonlocal left
        caller = await Caller.connect(port)
        while left > 0:
            try:
                at, n = queue.get_nowait()
            except asyncio.QueueEmpty:
                await asyncio.sleep(0.01)
                continue
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            status = await caller.send(requests[n])
            answers.statuses[status] = answers.statuses.get(status, 0) + 1
            if 200 <= status < 300:
                left -= 1
                answers.seconds.append(time.perf_counter() - due[n])
            else:
                queue.put_nowait((time.perf_counter() + 0.2, n))
            if not caller.is_open:
                caller = await Caller.connect(port)
        caller.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return answers


async def flood(port: int, per_second: float, sources: int, stopping: asyncio.Event) -> int:
    """Send forged callbacks at a steady rate from so many addresses; return how many."""
    requests = list(callbacks("forged", 200, forged=True))
    sent = 0

    async def forge(source: str) -> None:
        nonlocal sent
        caller: Caller | None = None
        next_at = time.perf_counter()
        while not stopping.is_set():
            next_at = max(next_at + sources / per_second, time.perf_counter() - 0.1)
            await asyncio.sleep(max(0.0, next_at - time.perf_counter()))
            if caller is None or not caller.is_open:
                caller = await Caller.connect(port, source)
            sent += 1
            await caller.send(requests[sent % len(requests)])

    await asyncio.gather(*(forge(f"127.0.1.{n + 1}") for n in range(sources)))
    return sent


async def _flood_until_told(port: int) -> int:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), stopping.set)
    flooding = asyncio.create_task(flood(port, FLOOD_PER_SECOND, FLOOD_SOURCES, stopping))
    # Once every source has used up what it may guess, the flood is what it will be.
    await asyncio.wait([flooding], timeout=3.0)
    sys.stdout.write("flooding\n")
    sys.stdout.flush()
    return await flooding


def main() -> None:
    """Flood a port with forged callbacks until a line comes on stdin; print how many there were."""
    sys.stdout.write(f"{uvloop.run(_flood_until_told(int(sys.argv[1])))}\n")


if __name__ == "__main__":
    main()
