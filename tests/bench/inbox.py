"""
Callbacks applied per second by the inbox worker, in batches of 200.

A backlog of callbacks, each of which changes its task, is drained by `process_inbox`: mapped,
locked, read, judged, applied, marked. The references make the same writes in the same batches and
nothing else: bare statements, sent by pgbench, which does not wait between them, and one bare
function. Two workers that share the shards drain the same backlog against one.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.rows import scalar_row

from tests.bench.apply import DURABLE, SQL, must_be_alike, pgbench, prepare, writes_of
from tests.bench.harness import Result, take_turns
from tests.py.support.clusters import Cluster, Run

BATCH = 200
CALLBACKS = 12_000
ROUNDS = 3
SHARDS = list(range(8))
FILL = (SQL / "inbox_fill.sql").read_text()

Session = psycopg.Connection[int]
Work = Callable[[Session, Sequence[int]], int]


def run() -> Sequence[Result]:
    """Measure on PostgreSQL 18 with a durable, throw-away cluster."""
    whole = Run.begin()
    try:
        cluster = whole.start_cluster("bench", 18, DURABLE)
        prepare(cluster)
        with _session(cluster.conninfo("bench")) as session:
            session.execute((SQL / "inbox_bare.sql").read_text().encode())
            session.execute(
                "alter table aivedio.provider_callback_inbox set (autovacuum_enabled = off)"
            )
            return _measure(cluster, session)
    finally:
        whole.end()


@contextmanager
def _session(conninfo: str) -> Iterator[Session]:
    with psycopg.connect(conninfo, autocommit=True, row_factory=scalar_row) as session:
        yield session


def _measure(cluster: Cluster, session: Session) -> Sequence[Result]:
    rounds = itertools.count()

    def fill(count: int) -> None:
        session.execute("truncate aivedio.provider_callback_inbox")
        session.execute(FILL, {"count": count, "round": f"round {next(rounds)}: "})
        session.execute("vacuum analyze aivedio.provider_callback_inbox")

    def rate(work: Work, workers: int) -> Callable[[], float]:
        def measure() -> float:
            fill(CALLBACKS)
            return _drain(cluster.conninfo("bench"), work, workers)

        return measure

    script = _script(Path(cluster.folder))

    def statements() -> float:
        fill(CALLBACKS)
        return BATCH * pgbench(cluster, script, transactions=CALLBACKS // BATCH)

    compared: dict[str, Callable[[], object]] = {
        "ours": lambda: _ours(session, SHARDS),
        "bare statements": lambda: pgbench(cluster, script, transactions=1),
        "bare function": lambda: _function(session, SHARDS),
    }
    seen = {}
    for name, work in compared.items():
        fill(BATCH)
        seen[name] = writes_of(session, work)
    must_be_alike(seen)

    rates = take_turns(
        {
            "one worker": rate(_ours, 1),
            "two workers": rate(_ours, 2),
            "bare statements": statements,
            "bare function": rate(_function, 1),
        },
        ROUNDS,
    )
    one, spread = rates["one worker"]
    two, both = rates["two workers"]
    unit = "callbacks/s"
    return (
        Result("inbox", one, unit, rates["bare statements"][0], 0.7, spread),
        Result("inbox_bare_function", one, unit, rates["bare function"][0], None, spread),
        Result("inbox_two_workers", two, unit, one, 1.4, both),
    )


def _drain(conninfo: str, work: Work, workers: int) -> float:
    """Return callbacks per second until none is left; each worker has its share of the shards."""
    barrier = threading.Barrier(workers + 1)
    failed: list[BaseException] = []

    def live(shards: Sequence[int]) -> None:
        try:
            with _session(conninfo) as session:
                session.execute("select 1")
                barrier.wait()
                while work(session, shards):
                    pass
        except BaseException as error:
            failed.append(error)
            barrier.abort()

    threads = [
        threading.Thread(target=live, args=(SHARDS[number::workers],)) for number in range(workers)
    ]
    for thread in threads:
        thread.start()
    barrier.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    if failed:
        raise failed[0]
    return CALLBACKS / seconds


def _ours(session: Session, shards: Sequence[int]) -> int:
    query = "select claimed from aivedio.process_inbox(%s::smallint[], %s)"
    return _number(session, query, list(shards), BATCH)


def _function(session: Session, shards: Sequence[int]) -> int:
    return _number(session, "select public.bare_inbox(%s::integer[], %s)", list(shards), BATCH)


def _number(session: Session, query: str, *arguments: object) -> int:
    found = session.execute(query, arguments, prepare=True).fetchone()
    assert found is not None
    return found


# One batch as a client would send it that does not wait between its statements. Ids of a fresh
# backlog have no holes, so the rows of a batch are known by the first one.
CLAIM = """begin;
select coalesce(min(id), 0) as base from (
  select inbox.id
  from aivedio.provider_callback_inbox as inbox
  join aivedio.task_attempts as attempt
    on attempt.provider = inbox.provider and attempt.provider_task_id = inbox.provider_task_id
  where inbox.process_status in ('pending', 'retry')
  order by inbox.id limit {batch} for no key update of inbox skip locked
) as claimed \\gset
"""
FINISH = """update aivedio.provider_callback_inbox as inbox
set process_status = 'done', verdict = 'applied', processed_at = now(), attempt_id = (
  select attempt.id from aivedio.task_attempts as attempt
  where attempt.provider = inbox.provider and attempt.provider_task_id = inbox.provider_task_id
)
where inbox.id >= :base and inbox.id < :base + {batch};
commit;
"""


def _script(folder: Path) -> Path:
    """Write the pgbench script of one batch of bare statements, and return where it is."""
    statements = (SQL / "inbox_statements.sql").read_text()
    rows = "".join(f"\\set n mod(:base + {row}, 2000)\n{statements}" for row in range(BATCH))
    path = folder / "inbox_batch.sql"
    path.write_text(f"{CLAIM}\\startpipeline\n{rows}\\endpipeline\n{FINISH}".format(batch=BATCH))
    path.chmod(0o644)
    return path
