"""Free loopback ports."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a TCP port that was free a moment ago; the kernel hands out another one each time."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
