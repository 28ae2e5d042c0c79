"""
200 browsers that read nothing, among 300 of the same project that do.

What one costs is the gateway's memory and the kernel's, which is read as the memory of all TCP
sockets of the machine. What the others feel is their p99 before and after.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.bench.gateway.browsers import Browsers, browsers
from tests.bench.gateway.world import Gateway, World, world
from tests.bench.harness import Result, say

DEAF = 200
READERS = 300
# Kept by the ring, so that nobody is cut off while it is measured; far more than buffers hold.
EVENTS = 900
AT_ONCE = 30
KIB = 1024


def run() -> Sequence[Result]:
    """Measure before and after they stop to read."""
    with world(1) as servers:
        (gateway,) = servers.start()
        (project,) = servers.tasks
        requests = servers.requests([project] * (DEAF + READERS))
        requests = [(int(number >= DEAF), text) for number, (_, text) in enumerate(requests)]
        with browsers([gateway.port], requests, DEAF + READERS) as many:
            many.ask(f"small {DEAF}")
            many.open()
            # Before anything was sent: memory that was used once stays with the process.
            empty = _memory(gateway)
            before = _send(servers, many)
            many.ask(f"deaf {DEAF}")
            after = _send(servers, many)
            each = (_memory(gateway) - empty) / DEAF / KIB
    say(f"  {each:.0f} KiB each; the others' p99 {before:.1f} ms before, {after:.1f} ms after")
    return (
        Result("gateway_slow_memory", each, "KiB a slow reader", None, 200, at_most=True),
        Result("gateway_slow_p99", after, "ms", before, 1.5, at_most=True),
    )


def _send(servers: World, many: Browsers) -> float:
    """Send events in portions; return the readers' p99."""
    (task,) = servers.tasks.values()
    many.ask("stat")
    for _ in range(EVENTS // AT_ONCE):
        servers.changes.publish(servers.changes.emit([task] * AT_ONCE))
    seen = many.ask("until 1000000000 3000")
    if seen.late[1].events != EVENTS * READERS or seen.gaps or seen.lost:
        raise RuntimeError(f"not {EVENTS * READERS} deliveries: {seen}")
    return seen.late[1].p99


def _memory(gateway: Gateway) -> int:
    (line,) = [
        line
        for line in Path("/proc/net/sockstat").read_text().splitlines()
        if line.startswith("TCP:")
    ]
    pages = int(line.rsplit(" ", 1)[1])
    return gateway.memory() + pages * os.sysconf("SC_PAGE_SIZE")
