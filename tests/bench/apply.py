"""
Observations applied per second, one transaction each, by 8 clients over a Unix socket.

Ours is apply_observation with everything it does: lock, judge, task, attempt, event, outbox row,
ledger row, stream head, doorbell. The references make the same writes, bytes included, without
judging anything: six statements of a client's transaction, and one bare function. The bell's
reader is awake, as it is whenever there is load; how much a sleeping one costs is measured beside
it.

pgbench is the client, so the client is not the limit.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from tests.bench.harness import Result, take_turns
from tests.py.support import schema
from tests.py.support.clusters import Cluster, Run
from tests.py.support.waiting import eventually

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
        prepare(cluster)
        _compare_writes(cluster)
        return _measure(cluster)
    finally:
        whole.end()


def prepare(cluster: Cluster) -> None:
    """Make a database `bench` with tasks of which every observation is news."""
    with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
        connection.execute("create database bench")
    schema.apply(cluster.conninfo("bench"))
    with psycopg.connect(cluster.conninfo("bench"), autocommit=True) as connection:
        connection.execute((SQL / "apply_setup.sql").read_text())
        connection.execute("vacuum analyze")


def writes_of(
    session: psycopg.Connection[Any], work: Callable[[], object]
) -> dict[str, tuple[int, int, int]]:
    """Return how many rows of which table some work inserts, updates and deletes."""

    def counts() -> dict[str, tuple[int, int, int]]:
        with session.cursor(row_factory=tuple_row) as cursor:
            cursor.execute("select pg_stat_force_next_flush()")
            cursor.execute("select pg_stat_clear_snapshot()")
            cursor.execute(
                "select regexp_replace(relname, '_p\\d+$', ''), sum(n_tup_ins), sum(n_tup_upd),"
                " sum(n_tup_del) from pg_stat_user_tables where schemaname = 'aivedio' group by 1"
            )
            return {name: (int(i), int(u), int(d)) for name, i, u, d in cursor.fetchall()}

    before = counts()
    work()

    def counted() -> dict[str, tuple[int, int, int]] | None:
        # A session reports when it ends, which may be a moment after its client did.
        found = counts()
        return found if found != before else None

    after = eventually(counted, 10.0, "the work was counted")
    return {
        name: (found[0] - was[0], found[1] - was[1], found[2] - was[2])
        for name, found in after.items()
        # Where a queue's scan begins is moved now and then, whoever works.
        if (was := before.get(name, (0, 0, 0))) != found and name != "queue_marks"
    }


def must_be_alike(seen: Mapping[str, dict[str, tuple[int, int, int]]]) -> None:
    """Refuse references that write other rows than ours does."""
    if len({tuple(sorted(counts.items())) for counts in seen.values()}) != 1:
        raise RuntimeError(f"the variants do not write the same: {seen}")


def _compare_writes(cluster: Cluster) -> None:
    with psycopg.connect(cluster.conninfo("bench"), autocommit=True) as session:
        must_be_alike(
            {
                name: writes_of(session, partial(pgbench, cluster, _script(name), transactions=50))
                for name in ("ours", "statements", "bare_function")
            }
        )


def _script(name: str) -> Path:
    return SQL / f"apply_{name}.sql"


def _measure(cluster: Cluster) -> Sequence[Result]:
    def awake() -> float:
        with _reader_awake(cluster):
            return pgbench(cluster, _script("ours"))

    seen = take_turns(
        {
            "ours, relay awake": awake,
            "ours, relay asleep": lambda: pgbench(cluster, _script("ours")),
            "six statements": lambda: pgbench(cluster, _script("statements")),
            "one bare function": lambda: pgbench(cluster, _script("bare_function")),
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


def pgbench(cluster: Cluster, script: Path, *, transactions: int | None = None) -> float:
    """
    Return transactions per second of a script; refuses a run with a failed transaction.

    With `transactions`, one client makes that many and no more.
    """
    bounds = (
        (f"--client={CLIENTS}", "--jobs=2", f"--time={SECONDS}")
        if transactions is None
        else ("--client=1", f"--transactions={transactions}")
    )
    done = subprocess.run(
        [
            *(str(Path(cluster.bin) / "pgbench"), "--no-vacuum", "--protocol=prepared"),
            *bounds,
            f"--file={script}",
            *("-h", cluster.socket, "-p", str(cluster.port), "-U", "postgres", "bench"),
        ],
        # A statement of a script is always the same: planning it again and again measures nothing.
        env={**os.environ, "PGOPTIONS": "-c plan_cache_mode=force_generic_plan"},
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
