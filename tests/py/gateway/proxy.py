"""A TCP proxy that a test can cut, freeze and mend: a server that goes away and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """
    Forwards 127.0.0.1:`port` to a server's port.

    cut: connections are reset and new ones refused, as by a server that stopped.
    freeze: nothing passes and nothing is closed, as by a network cut or a stopped process.
    """

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def mend(self) -> None:
        """Let everything pass again."""
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    def freeze(self) -> None:
        self._flowing.clear()

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        self._flowing.set()
        await asyncio.sleep(0)

    async def close(self) -> None:
        await self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there, here = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(here)
        for source, sink in ((reader, here), (there, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            self._writers.discard(sink)
            sink.transport.abort()


@asynccontextmanager
async def proxied(port: int, target: int) -> AsyncIterator[Proxy]:
    """Return a proxy that lets everything pass, until the block ends."""
    proxy = Proxy(port, target)
    await proxy.mend()
    try:
        yield proxy
    finally:
        await proxy.close()
