"""Where a request really came from, and whether it travelled encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import HTTPConnection

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Origin:
    """`source` is what counts as one sender: an IPv4 address, or an IPv6 /64."""

    source: str
    encrypted: bool


def origin(request: HTTPConnection, trusted: Sequence[Network]) -> Origin:
    """
    Return a request's origin, believing X-Forwarded-* only from `trusted` peers.

    Of several forwarded addresses the last that no trusted proxy has counts; of several protocols
    the last, which the nearest proxy wrote.
    """
    peer = _address(request.client.host if request.client else "")
    encrypted = request.scope["scheme"] == "https"
    if peer is None or not _within(peer, trusted):
        return Origin(_source(peer), encrypted)
    protocols = _values(request, "x-forwarded-proto")
    if protocols:
        encrypted = protocols[-1].lower() == "https"
    for text in reversed(_values(request, "x-forwarded-for")):
        hop = _address(text)
        if hop is None:
            break
        peer = hop
        if not _within(hop, trusted):
            break
    return Origin(_source(peer), encrypted)


def peer_source(host: str, trusted: Sequence[Network]) -> str | None:
    """Return what counts as the sender of a connection, or None if a trusted proxy made it."""
    peer = _address(host)
    return None if peer is not None and _within(peer, trusted) else _source(peer)


def _values(request: HTTPConnection, name: str) -> list[str]:
    joined = ",".join(request.headers.getlist(name))
    return [value.strip() for value in joined.split(",") if value.strip()]


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _source(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)
