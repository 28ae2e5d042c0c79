"""
A burst of 40 changes of one project to 5,000 browsers, over Redis, by one gateway process.

Deliveries a second count from the first message's publication to the last one's arrival. Meanwhile
20 other projects go on as always: how late their events come is what a burst costs others. The
same burst through Centrifugo on the same Redis is the reference, where Go is present to build it.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import UUID

from tests.bench.gateway.browsers import Browsers, browsers
from tests.bench.gateway.centrifugo import centrifugo, program
from tests.bench.gateway.world import World, world
from tests.bench.harness import Result, say

STREAMS = 5000
BURST = 40
OTHERS = 20
ROUNDS = 5
WITHIN_MS = 30_000


def run() -> Sequence[Result]:
    """Measure ours, then the reference."""
    with world(1 + OTHERS) as servers:
        ours = _ours(servers)
        binary = program()
        theirs = None
        if binary is not None:
            try:
                theirs = _theirs(servers, binary)
            except (OSError, RuntimeError) as error:
                say(f"  Centrifugo could not be measured: {error}")
    rates, p99s, others, costs = ours
    rate, p99 = statistics.median(rates), statistics.median(p99s)
    spread = (max(rates) - min(rates)) / rate
    results = [
        Result("gateway_burst", rate, "deliveries/s", None, 1_000_000, spread),
        # What another user of the machine cannot slow down.
        Result("gateway_burst_per_cpu", statistics.median(costs), "per CPU-s", None, 1_000_000),
        Result("gateway_burst_p99", p99, "ms", None, 200, at_most=True),
        Result("gateway_burst_others_p99", statistics.median(others), "ms", None, 20, at_most=True),
    ]
    if theirs is not None:
        reference_rate, reference_p99 = map(statistics.median, theirs)
        results += [
            Result("gateway_burst_centrifugo", rate, "deliveries/s", reference_rate),
            Result("gateway_burst_p99_centrifugo", p99, "ms", reference_p99, 0.25, at_most=True),
        ]
    return results


def _ours(servers: World) -> tuple[list[float], list[float], list[float], list[float]]:
    (gateway,) = servers.start()
    busy, *others = servers.tasks
    requests = servers.requests(others, group=1) + servers.requests([busy] * STREAMS)
    rates: list[float] = []
    p99s: list[float] = []
    late: list[float] = []
    costs: list[float] = []
    with browsers([gateway.port], requests, OTHERS + STREAMS) as many:
        many.open()
        with _going_on(servers, [servers.tasks[project] for project in others]):
            while len(rates) < ROUNDS:
                events = servers.changes.emit([servers.tasks[busy]] * BURST)
                many.ask("stat")
                used = gateway.cpu()
                servers.changes.publish(events)
                collected = _collect(many)
                if collected is None:
                    say("  once more: a look at the database was quicker than the messages")
                    continue
                rate, p99, other = collected
                used = gateway.cpu() - used
                rates.append(rate)
                p99s.append(p99)
                late.append(other)
                costs.append(STREAMS * BURST / max(used, 0.01))
                say(
                    f"  ours: {rate:,.0f}/s with {used:.2f} s of a processor, p99 {p99:.0f} ms, "
                    f"others' p99 {other:.1f} ms"
                )
    return rates, p99s, late, costs


def _theirs(servers: World, binary: Path) -> tuple[list[float], list[float]]:
    rates, p99s = [], []
    (busy, *_) = servers.tasks
    with centrifugo(binary, servers.redis_url) as reference:
        requests = reference.requests("busy")
        with browsers([reference.port], requests, STREAMS, "other") as many:
            many.open()
            for _ in range(ROUNDS):
                events = servers.changes.emit([servers.tasks[busy]] * BURST)
                many.ask("stat")
                reference.publish("busy", [event["public_payload"] for event in events])
                collected = _collect(many, least=0.99)
                assert collected is not None
                rate, p99, _ = collected
                rates.append(rate)
                p99s.append(p99)
                say(f"  Centrifugo: {rate:,.0f}/s, p99 {p99:.0f} ms")
    return rates, p99s


def _collect(many: Browsers, least: float = 1.0) -> tuple[float, float, float] | None:
    """
    Wait for all deliveries; return their rate, their p99 and the other group's.

    None if some came as read from the database, which says nothing of the messages.
    """
    wanted = STREAMS * BURST
    seen = many.ask(f"until {wanted} {WITHIN_MS}")
    got = seen.late[0]
    if got.events < wanted * least or (least == 1.0 and (seen.gaps or seen.lost)):
        raise RuntimeError(f"not {wanted} deliveries: {seen}")
    if got.timed < got.events:
        return None
    return got.events / got.seconds, got.p99, seen.late[1].p99


@contextmanager
def _going_on(servers: World, tasks: Sequence[UUID]) -> Iterator[None]:
    """Change each task every 50 ms, and publish it."""
    ended = threading.Event()

    def work() -> None:
        with ExitStack() as opened:
            changes = servers.beside(opened)
            while not ended.wait(0.05):
                changes.publish(changes.emit(tasks))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
