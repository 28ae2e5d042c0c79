"""
What an idle stream costs a gateway: over SSE, over WebSocket, and with a project of its own each.

The bytes are the process's own, divided by its connections; the kernel's are not in it. Requests
are those of a browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tests.bench.gateway.browsers import browsers
from tests.bench.gateway.world import World, world
from tests.bench.harness import Result, say

STREAMS = 10_000
KIB = 1024


def run() -> Sequence[Result]:
    """Measure with gateways of one process each."""
    with world(STREAMS) as servers:
        shared = list(servers.tasks)[:1] * STREAMS
        return (
            _measure(servers, "gateway_memory_sse", shared, "sse", 4.0),
            _measure(servers, "gateway_memory_ws", shared, "ws", 4.0),
            _measure(servers, "gateway_memory_hub_each", list(servers.tasks), "sse", 6.0),
        )


def _measure(servers: World, name: str, projects: Sequence[UUID], kind: str, bar: float) -> Result:
    (gateway,) = servers.start()
    requests = servers.requests(projects, socket=kind == "ws")
    # What the first ones bring in is the program's, not theirs.
    with browsers([gateway.port], requests[:200], 200, kind) as few:
        few.open()
        before = gateway.memory()
        with browsers([gateway.port], requests[200:], STREAMS - 200, kind, inflight=100) as many:
            many.open()
            each = (gateway.memory() - before) / many.count / KIB
    say(f"  {name}: {each:.2f} KiB each of {many.count}")
    return Result(name, each, "KiB a stream", None, bar, at_most=True)
