"""
100,000 browsers on this machine: seven gateways, and 1,080 changes a second through the whole path.

Changes are committed, and come by the outbox, the relay, the bus, the dispatcher and Redis to 1.3
browsers each. How late they are is from the change's own time to its arrival. Runs with LONG=1.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack

from tests.bench.gateway.browsers import Browsers, browsers
from tests.bench.gateway.world import World, world
from tests.bench.harness import Result, say

GATEWAYS = 7
CLIENTS = 7
STREAMS = 100_000
PROJECTS = 77_000
RATE = 1080
TICK_S = 0.02
SECONDS = 30.0
MIB = 1024 * 1024


def run() -> Sequence[Result]:
    """Measure, if LONG=1 is in the environment."""
    if os.environ.get("LONG") != "1":
        say("  left out: set LONG=1")
        return ()
    with world(PROJECTS) as servers, ExitStack() as opened:
        gateways = servers.start(GATEWAYS)
        for name in ("relay", "dispatch"):
            servers.process(name)
        empty = sum(gateway.memory() for gateway in gateways)
        projects = list(servers.tasks)
        requests = servers.requests([projects[n % PROJECTS] for n in range(STREAMS)])
        each = STREAMS // CLIENTS
        ports = [gateway.port for gateway in gateways]
        clients = [
            opened.enter_context(
                browsers(ports, requests[start : start + each], each, "path", inflight=60)
            )
            for start in range(0, each * CLIENTS, each)
        ]
        connected = _open(clients)
        count = sum(client.ask("stat").streaming for client in clients)
        say(f"  {count:,} connected in {connected:.1f} s")
        late, complete, rate = _change(servers, clients, each * CLIENTS)
        memory = sum(gateway.memory() for gateway in gateways)
        say(f"  gateways {memory / MIB:.0f} MiB, {empty / MIB:.0f} of them when empty")
    return (
        Result("gateway_100k_streams", count, "streams", each * CLIENTS, 1.0),
        Result("gateway_100k_connect", connected, "s", None, 30, at_most=True),
        Result("gateway_100k_memory", memory / MIB, "MiB", None, 600, at_most=True),
        Result("gateway_100k_rate", rate, "changes/s", RATE, 0.95),
        Result("gateway_100k_complete", complete, "of all deliveries", None, 1.0),
        Result("gateway_100k_p99", late, "ms", None, 1000, at_most=True),
    )


def _open(clients: Sequence[Browsers]) -> float:
    begun = time.monotonic()
    for client in clients:
        client.say("open")
    for client in clients:
        if failed := client.hear().failed:
            say(f"  {failed} times somebody was sent away, and came back")
    return time.monotonic() - begun


def _change(
    servers: World, clients: Sequence[Browsers], streams: int
) -> tuple[float, float, float]:
    """Make changes for a while; return the worst p99, the share that came, and the rate."""
    turns = itertools.cycle(enumerate(servers.tasks.values()))
    at_once = round(RATE * TICK_S)
    wanted = sent = 0
    begun = due = time.monotonic()
    while due - begun < SECONDS:
        chosen = [next(turns) for _ in range(at_once)]
        servers.changes.emit([task for _, task in chosen])
        sent += at_once
        wanted += sum(1 + (number + PROJECTS < streams) for number, _ in chosen)
        due += TICK_S
        time.sleep(max(0.0, due - time.monotonic()))
    rate = sent / (time.monotonic() - begun)
    time.sleep(5.0)  # the rest is on its way; nobody asks meanwhile
    seen = [client.ask("stat") for client in clients]
    events = sum(one.late[0].events for one in seen)
    gaps, lost = sum(one.gaps for one in seen), sum(one.lost for one in seen)
    p99 = max(one.late[0].p99 for one in seen)
    say(
        f"  {rate:,.0f} changes/s, {events:,} of {wanted:,} deliveries, {gaps} gaps, "
        f"{lost} lost, p50 {max(one.late[0].p50 for one in seen):.0f} ms, p99 {p99:.0f} ms"
    )
    return p99, events / wanted, rate
