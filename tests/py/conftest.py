"""
Fixtures that every test may use.

`database` is a fresh copy of the template, on PostgreSQL 18 unless the test is marked
`both_versions` or asks for `pg_version` itself. `connect` and `connect_async` open sessions in it
that end with the test; a session acts as an edge by `role=`. `valkey` is a private server.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.py.support import rocketmq
from tests.py.support.clusters import DEFAULT_VERSION, VERSIONS, Cluster, Run
from tests.py.support.ports import free_port as find_free_port

RUN_FOLDER = "AIVEDIO_TEST_RUN"
_run = pytest.StashKey[Run]()

# A statement that waits for ever is a failed test, soon.
BOUNDED = "-c statement_timeout=30s"

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]
Connect = Callable[..., Connection]
ConnectAsync = Callable[..., Awaitable[AsyncConnection]]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_versions: run on PostgreSQL 15 and on 18")
    config.addinivalue_line("markers", "long: takes minutes; left out unless --long is given")
    if hasattr(config, "workerinput"):
        config.stash[_run] = Run(Path(os.environ[RUN_FOLDER]))
    else:
        run = Run.begin()
        os.environ[RUN_FOLDER] = str(run.folder)
        config.stash[_run] = run


def pytest_unconfigure(config: pytest.Config) -> None:
    run = config.stash.get(_run, None)
    if run is None:
        return
    if hasattr(config, "workerinput"):
        run.release_handles()
    else:
        run.end()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run tests marked long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("both_versions"):
        metafunc.parametrize("pg_version", VERSIONS)


@pytest.fixture
def pg_version() -> int:
    return DEFAULT_VERSION


@pytest.fixture(scope="session")
def run(pytestconfig: pytest.Config) -> Run:
    return pytestconfig.stash[_run]


@pytest.fixture
def cluster(run: Run, pg_version: int) -> Cluster:
    return run.cluster(pg_version)


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """Return the conninfo of a database of the test's own, as the superuser."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    yield cluster.create_database(name)
    cluster.drop_database(name)


@pytest.fixture
def connect(database: str) -> Iterator[Connect]:
    """Return a function that opens a session: connect(role="aivedio_webhook", autocommit=True)."""
    with ExitStack() as open_sessions:

        def session(role: str | None = None, **arguments: Any) -> Connection:
            options = f"{BOUNDED} -c role={role}" if role else BOUNDED
            connection = psycopg.connect(database, options=options, connect_timeout=10, **arguments)
            open_sessions.callback(connection.close)
            return connection

        yield session


@pytest.fixture
async def connect_async(database: str) -> AsyncIterator[ConnectAsync]:
    """Return what `connect` returns, for coroutines."""
    async with AsyncExitStack() as open_sessions:

        async def session(role: str | None = None, **arguments: Any) -> AsyncConnection:
            options = f"{BOUNDED} -c role={role}" if role else BOUNDED
            connection = await psycopg.AsyncConnection.connect(
                database, options=options, connect_timeout=10, **arguments
            )
            open_sessions.push_async_callback(connection.close)
            return connection

        yield session


@pytest.fixture
def valkey(run: Run) -> Iterator[str]:
    """Return the URL of a Valkey server of the test's own."""
    url, keeper = run.start_valkey(f"valkey-{uuid.uuid4().hex[:8]}")
    yield url
    run.stop(keeper)


@pytest.fixture
def free_port() -> Callable[[], int]:
    return find_free_port


@pytest.fixture(scope="session")
def broker(run: Run) -> rocketmq.Broker:
    """Return the run's RocketMQ; its tests share the xdist group `rocketmq`."""
    return rocketmq.broker(run)
