"""Free loopback ports."""

from __future__ import annotations

import random
import socket

# Below the range of outgoing connections, one of which could take the port before the test does.
_PORTS = range(10_000, 20_000)


def free_port() -> int:
    """Return a TCP port that was free a moment ago."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """Return the first of so many TCP ports in a row that were free a moment ago."""
    while True:
        first = random.choice(_PORTS)
        if all(_is_free(port) for port in range(first, first + count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
