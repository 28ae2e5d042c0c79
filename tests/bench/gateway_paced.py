"""
1,111 changes a second, evenly, to 3,000 browsers of 1,000 projects, over Redis, by one gateway.

Each change is committed and then published as the dispatcher does; how late it comes is from the
moment of its publication to its arrival in the browser's process.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

from tests.bench.gateway.browsers import browsers
from tests.bench.gateway.world import world
from tests.bench.harness import Result, say

PROJECTS = 1000
STREAMS = 3000
AT_ONCE = 5
TICK_S = 0.0045
SECONDS = 8.0


def run() -> Sequence[Result]:
    """Measure over some seconds."""
    with world(PROJECTS) as servers:
        (gateway,) = servers.start()
        projects = list(servers.tasks)
        requests = servers.requests([projects[n % PROJECTS] for n in range(STREAMS)])
        with browsers([gateway.port], requests, STREAMS) as many:
            many.open()
            turns = itertools.cycle(servers.tasks.values())
            many.ask("stat")
            begun, due, sent = time.monotonic(), time.monotonic(), 0
            while due - begun < SECONDS:
                servers.changes.publish(servers.changes.emit([next(turns) for _ in range(AT_ONCE)]))
                sent += AT_ONCE
                due += TICK_S
                time.sleep(max(0.0, due - time.monotonic()))
            seconds = time.monotonic() - begun
            wanted = sent * STREAMS // PROJECTS
            seen = many.ask(f"until {wanted} 10000")
            late = seen.late[0]
            if late.events != wanted or seen.gaps or seen.lost:
                raise RuntimeError(f"not {wanted} deliveries: {seen}")
            say(f"  {sent / seconds:,.0f} changes/s, p50 {late.p50:.2f} ms, p99 {late.p99:.2f} ms")
            return (Result("gateway_paced_p99", late.p99, "ms", None, 5, at_most=True),)
