"""
A gateway dies, and its 10,000 browsers come to a new one within 10 s, each with its cursor.

Meanwhile each of their 300 projects changes three times. Everybody must have all of it, without a
reset, and PostgreSQL is read at most twice for each project.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.gateway.browsers import browsers
from tests.bench.gateway.world import world
from tests.bench.harness import Result, say

PROJECTS = 300
STREAMS = 10_000
MISSED = 3
SPREAD_MS = 10_000


def run() -> Sequence[Result]:
    """Measure one storm."""
    with world(PROJECTS) as servers:
        (first,) = servers.start()
        projects = list(servers.tasks)
        requests = servers.requests([projects[n % PROJECTS] for n in range(STREAMS)], resume=True)
        with browsers([first.port], requests, STREAMS) as many:
            many.open()
            first.process.kill()
            first.process.wait()
            many.ask("drop")
            servers.changes.emit(list(servers.tasks.values()) * MISSED)
            (second,) = servers.start(port=first.port)
            many.say(f"again {SPREAD_MS}")
            opened = many.hear()
            # They count from where they were asked before, so this is what is still missing.
            missing = STREAMS * MISSED - opened.late[0].events
            rest = many.ask(f"until {missing} 20000") if missing > 0 else opened
            events = opened.late[0].events + (rest.late[0].events if missing > 0 else 0)
            reads = second.metric("aivedio_gateway_reads_total")
            say(
                f"  {opened.streaming:,} are back, {opened.failed} were sent away, "
                f"{events:,} events, {reads:.0f} reads"
            )
            if opened.gaps or opened.resets or rest.gaps:
                raise RuntimeError(f"not complete: {opened}")
    return (
        Result("gateway_storm_back", opened.streaming, "streams", STREAMS, 1.0),
        Result("gateway_storm_events", events, "deliveries", STREAMS * MISSED, 1.0),
        Result("gateway_storm_reads", reads, "reads", PROJECTS, 2.0, at_most=True),
    )
