"""Who sent a request: forwarded headers count only from proxies that we trust."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given, strategies as st
from starlette.requests import HTTPConnection

from edge.intake.origin import Origin, origin

TRUSTED = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


def request(peer: str | None, scheme: str = "http", **headers: str | list[str]) -> HTTPConnection:
    fields = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    scope: dict[str, Any] = {
        "type": "http",
        "scheme": scheme,
        "server": ("x", 80),
        "path": "/",
        "query_string": b"",
        "headers": fields,
        "client": (peer, 1) if peer is not None else None,
    }
    return HTTPConnection(scope)


@pytest.mark.parametrize(
    ("peer", "headers", "expected"),
    [
        ("203.0.113.5", {}, Origin("203.0.113.5", False)),
        (
            "203.0.113.5",
            {"x_forwarded_for": "1.2.3.4", "x_forwarded_proto": "https"},
            Origin("203.0.113.5", False),
        ),
        (
            "10.0.0.1",
            {"x_forwarded_for": "1.2.3.4", "x_forwarded_proto": "https"},
            Origin("1.2.3.4", True),
        ),
        ("10.0.0.1", {"x_forwarded_for": "6.6.6.6, 1.2.3.4, 10.9.9.9"}, Origin("1.2.3.4", False)),
        ("10.0.0.1", {"x_forwarded_for": ["6.6.6.6", "1.2.3.4"]}, Origin("1.2.3.4", False)),
        ("10.0.0.1", {"x_forwarded_for": "1.2.3.4, garbage"}, Origin("10.0.0.1", False)),
        ("10.0.0.1", {"x_forwarded_proto": ["https", "http"]}, Origin("10.0.0.1", False)),
        ("::ffff:10.0.0.1", {"x_forwarded_proto": "HTTPS"}, Origin("10.0.0.1", True)),
        ("fd00::1", {"x_forwarded_for": "2001:db8:1:2:3::4"}, Origin("2001:db8:1:2::/64", False)),
        (None, {"x_forwarded_proto": "https"}, Origin("None", False)),
    ],
)
def test_origin(peer: str | None, headers: dict[str, Any], expected: Origin) -> None:
    assert origin(request(peer, **headers), TRUSTED) == expected


def test_our_own_tls_counts_from_anybody() -> None:
    assert origin(request("203.0.113.5", "https"), []) == Origin("203.0.113.5", True)


header = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=40)


@given(
    peer=st.sampled_from(["10.0.0.1", "203.0.113.5", "fd00::1", "not an address", ""]),
    forwarded=st.lists(header | st.ip_addresses().map(str), max_size=4),
    protocol=st.lists(header | st.sampled_from(["http", "https"]), max_size=3),
)
def test_any_headers_have_an_origin_and_strangers_gain_nothing_by_them(
    peer: str, forwarded: list[str], protocol: list[str]
) -> None:
    found = origin(request(peer, x_forwarded_for=forwarded, x_forwarded_proto=protocol), TRUSTED)
    assert found.source
    if peer not in ("10.0.0.1", "fd00::1"):
        assert found == origin(request(peer), TRUSTED)
