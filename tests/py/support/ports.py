"""Free loopback ports."""

from __future__ import annotations

import random
import socket

# Below the range of outgoing connections, one of which could take the port before the test does.
_PORTS = range(10_000, 20_000)


def free_port() -> int:
    """Return a TCP port that was free a moment ago."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
