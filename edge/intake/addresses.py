"""
Connections to public addresses only.

A provider's host name is looked up here, once, and the connection goes to the very address that was
judged: a name that answers differently the second time gains nothing. TLS still checks the name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Any

import httpcore


class PublicOnly(httpcore.AsyncNetworkBackend):
    """A network that has no private, loopback, link-local or otherwise special addresses."""

    def __init__(self, network: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._network = network or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first public address of `host`."""
        for address in await _lookup(host, port, timeout):
            if is_public(address):
                return await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
        raise httpcore.ConnectError("no public address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: a socket file is never public."""
        raise httpcore.ConnectError("no public address")

    async def sleep(self, seconds: float) -> None:
        """Wait between two tries."""
        await self._network.sleep(seconds)


def is_public(text: str) -> bool:
    """Whether an address belongs to the public internet."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address.teredo is not None:
            inner = address.teredo[1]
        if inner is not None and not inner.is_global:
            return False
    return address.is_global and not address.is_multicast


async def _lookup(host: str, port: int, within: float | None) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(within):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        raise httpcore.ConnectTimeout("name lookup took too long") from error
    except OSError as error:
        raise httpcore.ConnectError("name not found") from error
    return [str(address[4][0]) for address in found]
