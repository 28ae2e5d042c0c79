"""Which addresses are public, and that a name is judged by the address that is then used."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpcore
import pytest

from edge.intake.network import Network, is_public, until


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1"),
        *("::127.0.0.1", "::ffff:0:7f00:1", "64:ff9b:1::7f00:1", "fec0::1", "5f00::1", "3fff::1"),
        *("192.0.0.8", "192.88.99.1", "240.0.0.1", "100::1", "2001::1"),
    ],
)
def test_not_public(address: str) -> None:
    assert not is_public(address)


async def test_a_name_that_turns_private_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lookups = []

    async def resolve(host: str, port: int, **_: Any) -> Any:
        lookups.append(host)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("127.0.0.1", "10.0.0.1")
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    with pytest.raises(httpcore.ConnectError):
        await Network(public_only=True).connect_tcp("rebind.example", 443)
    assert lookups == ["rebind.example"]


@pytest.mark.parametrize("error", [socket.gaierror(-2, "no"), UnicodeError("label too long")])
async def test_a_name_that_is_not_found_is_a_failed_connection(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """W29: whatever the resolver says, it means try again."""

    async def resolve(host: str, port: int, **_: Any) -> Any:
        raise error

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    with pytest.raises(httpcore.ConnectError):
        await Network(public_only=True).connect_tcp("nowhere.example", 443)


async def test_a_lookup_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int, **_: Any) -> Any:
        await asyncio.sleep(60)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", resolve)
    with until(loop.time() + 0.05), pytest.raises(httpcore.ConnectTimeout):
        await Network(public_only=True).connect_tcp("slow.example", 443, timeout=30)


async def test_there_are_no_socket_files() -> None:
    with pytest.raises(httpcore.ConnectError):
        await Network(public_only=False).connect_unix_socket("/tmp/x")
