"""The door to PostgreSQL: roles, bounds, rows, errors."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
import pytest

from edge import database as door, errors
from tests.py.support.waiting import eventually_async

ROLE = "aivedio_webhook"


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    number: int


class Pair(NamedTuple):
    name: str
    facts: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Failure:
    """Mirror of aivedio.signature_failure."""

    provider: str
    class_: str
    failures: int


@pytest.fixture
def define(connect: Callable[..., psycopg.Connection[Any]]) -> Callable[[str, str, str], None]:
    """Return a function that defines a stored function that ROLE may execute."""
    owner = connect(autocommit=True)

    def make(signature: str, result: str, body: str) -> None:
        owner.execute(
            f"create or replace function aivedio.{signature} returns {result}"
            f" language plpgsql as $body$ begin {body} end $body$"
        )
        owner.execute(f"grant execute on all functions in schema aivedio to {ROLE}")

    return make


@asynccontextmanager
async def opened(conninfo: str, **settings: Any) -> AsyncIterator[door.Database]:
    async with door.connect(conninfo, role=ROLE, **settings) as db:
        yield db


async def test_a_session_acts_as_its_role_with_an_empty_search_path_and_bounds(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define(
        "t_session(out name text, out number int)",
        "record",
        """name := current_user || '|' || current_setting('search_path') || '|' ||
             current_setting('lock_timeout') || '|' || current_setting('application_name');
           number := (select s.setting from pg_settings as s
                      where s.name = 'statement_timeout')::int;""",
    )
    async with opened(database, statement_timeout=1.5, lock_timeout=0.5) as db:
        thing = await db.one(Thing, "t_session")
    assert thing == Thing('aivedio_webhook|""|500ms|aivedio-webhook', 1500)


async def test_columns_that_a_class_does_not_know_are_ignored(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define(
        "t_wide(out number int, out added text, out name text)",
        "record",
        "number := 7; name := 'n'; added := 'later';",
    )
    async with opened(database) as db:
        assert await db.rows(Thing, "t_wide") == [Thing("n", 7)]


async def test_json_goes_and_comes_as_python_values(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define(
        "t_echo(p_facts jsonb, out name text, out facts jsonb)",
        "record",
        "name := pg_catalog.jsonb_typeof(p_facts); facts := p_facts;",
    )
    facts = {"é": [1, 2.5, None, {"deep": True}]}
    async with opened(database) as db:
        assert await db.one(Pair, "t_echo", p_facts=facts) == Pair("object", facts)


async def test_null_and_no_row_both_mean_no_such_thing(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define("t_null(out name text, out number int)", "record", "")
    define("t_none()", "table(name text, number int)", "return;")
    define("t_nothing()", "setof text", "return;")
    async with opened(database) as db:
        assert await db.maybe(Thing, "t_null") is None
        assert await db.maybe(Thing, "t_none") is None
        assert await db.values("t_nothing") == []


async def test_rows_of_a_composite_type_are_passed_as_an_array(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define(
        "t_count(p_failures aivedio.signature_failure[])",
        "text",
        """return (
             select string_agg(f.provider || f.class || f.failures, ',' order by f.failures)
             from unnest(p_failures) as f
           );""",
    )
    sent = [Failure('a"b', "x,y", 1), Failure("ü", "(", 2)]
    async with opened(database, composites={"signature_failure": Failure}) as db:
        assert await db.value("t_count", p_failures=sent) == 'a"bx,y1,ü(2'
        assert await db.value("t_count", p_failures=[]) is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("VC101", errors.Rejected),
        ("22P02", errors.BadValue),
        ("40001", errors.Contended),
        ("40P01", errors.Contended),
        ("55P03", errors.Contended),
        ("23514", errors.NoPartition),
        ("53300", errors.DatabaseDown),
    ],
)
async def test_a_sqlstate_becomes_its_error(
    database: str,
    define: Callable[[str, str, str], None],
    code: str,
    expected: type[errors.EdgeError],
) -> None:
    define(
        "t_raise()",
        "void",
        f"raise exception 'no' using errcode = '{code}', detail = 'why', hint = 'how';",
    )
    async with opened(database) as db:
        with pytest.raises(expected) as raised:
            await db.value("t_raise")
    assert type(raised.value) is expected
    assert (raised.value.code, raised.value.detail, raised.value.hint) == (code, "why", "how")
    assert isinstance(raised.value.__cause__, psycopg.Error)


async def test_an_unexpected_sqlstate_is_not_disguised(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define("t_defect()", "integer", "return (select 1 / 1 from nowhere.at_all);")
    define("t_dup()", "void", "raise unique_violation;")
    define("t_check()", "void", "raise check_violation using constraint = 'at_least_one';")
    async with opened(database) as db:
        with pytest.raises(psycopg.errors.UniqueViolation):
            await db.value("t_dup")
        # The row's own fault: waiting for a partition would never end.
        with pytest.raises(psycopg.errors.CheckViolation):
            await db.value("t_check")
        with pytest.raises(errors.NotMigrated):
            await db.value("t_defect")
        with pytest.raises(errors.NotMigrated):
            await db.value("t_no_such_function", p_x=1)


async def test_a_statement_that_takes_too_long_is_ended(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define("t_slow()", "void", "perform pg_catalog.pg_sleep(30);")
    async with opened(database, statement_timeout=0.2) as db:
        with pytest.raises(errors.TooSlow):
            await db.value("t_slow")


async def test_an_exhausted_pool_is_told_in_time(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define("t_slow()", "void", "perform pg_catalog.pg_sleep(30);")
    async with opened(database, max_size=1, acquire_timeout=0.2, statement_timeout=1.0) as db:
        busy = asyncio.create_task(db.value("t_slow"))
        await eventually_async(lambda: running(database))
        with pytest.raises(errors.DatabaseDown):
            await db.value("database_id")
        with pytest.raises(errors.TooSlow):
            await busy


async def test_no_database_is_told_in_time(cluster: Any) -> None:
    nowhere = f"host={cluster.socket} port=1 dbname=postgres user=postgres"
    async with opened(nowhere, acquire_timeout=0.2) as db:
        with pytest.raises(errors.DatabaseDown):
            await db.value("database_id")


async def test_killed_sessions_are_replaced(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define("t_slow()", "void", "perform pg_catalog.pg_sleep(30);")
    async with opened(database, max_size=3) as db:
        calls = [asyncio.create_task(db.value("t_slow")) for _ in range(3)]
        await eventually_async(lambda: running(database) == 3)
        with psycopg.connect(database, autocommit=True) as superuser:
            superuser.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'aivedio-webhook' and datname = current_database()"
            )
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, errors.DatabaseDown)
        define("t_slow()", "void", "")
        await asyncio.gather(*(db.value("t_slow") for _ in range(8)))


async def test_a_function_whose_result_changed_is_planned_anew(
    database: str, connect: Callable[..., psycopg.Connection[Any]], define: Callable[..., None]
) -> None:
    define("t_shape(out name text)", "text", "name := 'old';")
    async with opened(database, max_size=1) as db:
        assert await db.value("t_shape") == "old"
        connect(autocommit=True).execute("drop function aivedio.t_shape")
        define("t_shape(out name text, out number int)", "record", "name := 'new'; number := 1;")

        with pytest.raises(errors.Outdated):
            await db.one(Thing, "t_shape")
        assert await db.one(Thing, "t_shape") == Thing("new", 1)


async def test_uuids_and_small_numbers_find_their_parameters(
    database: str, define: Callable[[str, str, str], None]
) -> None:
    define(
        "t_types(p_id uuid, p_shard smallint, p_shards smallint[], p_cursor bigint, p_hash bytea)",
        "text",
        "return p_id::text || p_shard || p_shards::text || p_cursor || p_hash::text;",
    )
    one = uuid.UUID(int=1)
    async with opened(database) as db:
        said = await db.value(
            "t_types", p_id=one, p_shard=3, p_shards=[1, 2], p_cursor=5, p_hash=b"\x01"
        )
    assert said == f"{one}3{{1,2}}5\\x01"


def running(conninfo: str) -> int:
    with psycopg.connect(conninfo, autocommit=True) as watcher:
        row = watcher.execute(
            "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
            " and datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])
