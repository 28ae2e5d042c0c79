"""
Observations applied per second, one transaction each, by 8 clients over a Unix socket.

Ours is apply_observation with everything it does: lock, judge, task, attempt, event, outbox row,
ledger row, stream head, doorbell. The references make the same writes without judging anything:
six statements of a client's transaction, and one bare function. The bell's reader is awake, as it
is whenever there is load; how much a sleeping one costs is measured beside it.

pgbench is the client, so the client is not the limit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.bench.harness import Result, take_turns
from tests.py.support import schema
from tests.py.support.clusters import Cluster, Run

TASKS = 2000
CLIENTS = 8
SECONDS = 4
ROUNDS = 3
SHARDS = 8
PEAK = 1080  # changes a second that the platform is planned for
SQL = Path(__file__).parent / "sql"

# Commits must reach the disk here: that is what the rate is about.
DURABLE = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
}


def run() -> Sequence[Result]:
    """Measure on PostgreSQL 18 with a durable, throw-away cluster."""
    whole = Run.begin()
    try:
        cluster = whole.start_cluster("bench", 18, DURABLE)
        with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
            connection.execute("create database bench")
        schema.apply(cluster.conninfo("bench"))
        with psycopg.connect(cluster.conninfo("bench"), autocommit=True) as connection:
            connection.execute((SQL / "apply_setup.sql").read_text())
            connection.execute("vacuum analyze")
        return _measure(cluster)
    finally:
        whole.end()


def _measure(cluster: Cluster) -> Sequence[Result]:
    def awake() -> float:
        with _reader_awake(cluster):
            return pgbench(cluster, "ours")

    seen = take_turns(
        {
            "ours, relay awake": awake,
            "ours, relay asleep": lambda: pgbench(cluster, "ours"),
            "six statements": lambda: pgbench(cluster, "statements"),
            "one bare function": lambda: pgbench(cluster, "bare_function"),
        },
        ROUNDS,
    )
    ours, spread = seen["ours, relay awake"]
    unit = "observations/s"
    return (
        Result("apply", ours, unit, seen["six statements"][0], 0.9, spread),
        Result("apply_bare_function", ours, unit, seen["one bare function"][0], 0.6, spread),
        Result("apply_peak", ours, unit, PEAK, 3.0, spread),
        Result("apply_asleep", *_with_unit(seen["ours, relay asleep"], unit, ours)),
    )


def _with_unit(
    seen: tuple[float, float], unit: str, reference: float
) -> tuple[float, str, float, float | None, float]:
    value, spread = seen
    return value, unit, reference, None, spread


def pgbench(cluster: Cluster, script: str) -> float:
    """Return transactions per second of a script; refuses a run with a failed transaction."""
    done = subprocess.run(
        [
            *(str(Path(cluster.bin) / "pgbench"), "--no-vacuum", "--protocol=prepared"),
            *(f"--client={CLIENTS}", "--jobs=2", f"--time={SECONDS}"),
            f"--file={SQL / f'apply_{script}.sql'}",
            *("-h", cluster.socket, "-p", str(cluster.port), "-U", "postgres", "bench"),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS + 60,
    )
    rate = re.search(r"tps = ([\d.]+)", done.stdout)
    failed = re.search(r"failed transactions: (\d+)", done.stdout)
    if done.returncode or rate is None or (failed and failed[1] != "0"):
        raise RuntimeError(f"pgbench failed: {done.stdout}{done.stderr}")
    return float(rate[1])


@contextmanager
def _reader_awake(cluster: Cluster) -> Iterator[None]:
    """Hold every outbox bell, as a relay does while it drains."""
    with psycopg.connect(cluster.conninfo("bench"), autocommit=True) as reader:
        for shard in range(SHARDS):
            reader.execute("select aivedio.hold_bell('aivedio_outbox', %s::smallint)", [shard])
        yield
