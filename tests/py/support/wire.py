"""A TCP wire that a test can cut, hold or slow down, laid between a client and its server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CHUNK = 65_536


class Wire:
    """Forwards connections to `host`:`port` until it is told to misbehave."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connected = True
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self.port = 0
        self.accepted = 0

    async def start(self) -> None:
        self._up.set()
        self._down.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self.cut()

    async def cut(self) -> None:
        """Break every connection, and every new one, until `mend`."""
        self._connected = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hold(self, *, requests: bool = True, answers: bool = True) -> None:
        """Deliver nothing more in these directions, without breaking anything, until `mend`."""
        if requests:
            self._up.clear()
        if answers:
            self._down.clear()

    def mend(self) -> None:
        """Behave again."""
        self._connected = True
        self._up.set()
        self._down.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        try:
            if self._connected:
                await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        try:
            ways = {
                asyncio.ensure_future(_pump(reader, far_writer, self._up)),
                asyncio.ensure_future(_pump(far_reader, writer, self._down)),
            }
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            far_writer.close()


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event
) -> None:
    while data := await reader.read(CHUNK):
        await flowing.wait()
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def wire(host: str, port: int) -> AsyncIterator[Wire]:
    """Lay a wire for the length of the block."""
    laid = Wire(host, port)
    await laid.start()
    try:
        yield laid
    finally:
        await laid.stop()
