"""
The network as requests to providers see it: bounded in time, and public unless told otherwise.

httpx bounds each read, so a server that sends a byte now and then holds a request for ever; and
cancelling a request may leak its place in the pool. `until` therefore puts a deadline under every
single read and write of the requests in its block, which end as ordinary timeouts.

A provider's host name is looked up here, once, and the connection goes to the very address that was
judged: a name that answers differently the second time gains nothing. TLS still checks the name.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpcore

NAT64 = IPv6Network("64:ff9b::/96")

# All of IPv6 that is handed out; Python calls the rest global where nothing else is said.
UNICAST = IPv6Network("2000::/3")

# Special, and missing in the lists of the oldest Python that we run on.
SPECIAL = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("3fff::/20"),
)

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Let no read or write of this task's requests last past `deadline` (loop time)."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


class Network(httpcore.AsyncNetworkBackend):
    """Connects under the deadline; with `public_only`, to no private or other special address."""

    def __init__(self, *, public_only: bool) -> None:
        self._sockets = httpcore.AnyIOBackend()
        self._public_only = public_only

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to `host`, or to its first public address."""
        if self._public_only:
            host = await _public_address(host, port, _left(timeout))
        stream = await self._sockets.connect_tcp(
            host, port, _left(timeout), local_address, socket_options
        )
        return _Stream(stream)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: no provider is a file."""
        raise httpcore.ConnectError("no such network")

    async def sleep(self, seconds: float) -> None:
        """Wait between two tries."""
        await self._sockets.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """A connection whose reads and writes end at the deadline of whoever uses it."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
    ) -> bytes:
        return await self._stream.read(max_bytes, _left(timeout))

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
    ) -> None:
        await self._stream.write(buffer, _left(timeout))

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def is_public(text: str) -> bool:
    """Whether an address belongs to the public internet."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or (
            IPv4Address(int(address) & 0xFFFF_FFFF) if address in NAT64 else None
        )
        if inner is not None:
            return _is_ordinary(inner)
        tunnelled = address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address not in UNICAST or (tunnelled is not None and not _is_ordinary(tunnelled)):
            return False
    return _is_ordinary(address)


def _is_ordinary(address: IPv4Address | IPv6Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in SPECIAL)
    )


def _left(timeout: float | None) -> float | None:
    """Return the smaller of a timeout and the time that the deadline leaves."""
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    # Never 0: that would mean "at once", and an answer that is there may still be read.
    left = max(0.001, deadline - asyncio.get_running_loop().time())
    return left if timeout is None else min(timeout, left)


async def _public_address(host: str, port: int, within: float | None) -> str:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(within):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        raise httpcore.ConnectTimeout("name lookup took too long") from error
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError("name not found") from error
    for address in found:
        if is_public(str(address[4][0])):
            return str(address[4][0])
    raise httpcore.ConnectError("no public address")
