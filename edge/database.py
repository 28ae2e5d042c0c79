"""
The one door to PostgreSQL: edges call stored functions here and write no other SQL.

    async with database.connect(conninfo, role="aivedio_inbox") as db:
        batch = await db.one(InboxBatch, "process_inbox", p_shards=[0, 1], p_limit=200)

Every call is one autocommit statement, so it is committed before it returns. A row is mirrored
by a dataclass (or NamedTuple) with the column names of the SQL type; columns that the class does
not know are ignored, so a type may grow before its readers do. JSON comes as Python values, and a
dict goes as jsonb.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from keyword import iskeyword
from typing import Any, TypeVar

import orjson
import psycopg
from psycopg import sql
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import tuple_row
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.json import JsonbBinaryDumper, JsonbDumper, set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from edge import errors

Row = TypeVar("Row")
Connection = psycopg.AsyncConnection[tuple[Any, ...]]

# A client waits this much longer than the server's statement_timeout before it gives the
# connection up: the server's own answer says more.
GRACE = 2.0


def session(
    conninfo: str,
    *,
    role: str,
    statement_timeout: float,
    lock_timeout: float,
    settings: Mapping[str, str] | None = None,
) -> str:
    """
    Return `conninfo` for sessions that act as `role` and cannot wait for ever.

    The role and the limits are startup options, so they hold from the first statement and need
    no round trip. A peer that vanished is noticed by TCP within about 10 s.
    """
    given = conninfo_to_dict(conninfo)
    options = {
        "role": role,
        "search_path": '""',
        "statement_timeout": f"{round(statement_timeout * 1000)}",
        "lock_timeout": f"{round(lock_timeout * 1000)}",
        "idle_in_transaction_session_timeout": "60000",
        **(settings or {}),
    }
    defaults: dict[str, Any] = {
        "application_name": role.replace("aivedio_", "aivedio-"),
        "connect_timeout": 5,
        "keepalives": 1,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 2,
        "tcp_user_timeout": 10_000,
    }
    own = " ".join(f"-c {name}={_escaped(value)}" for name, value in options.items())
    given["options"] = f"{given.get('options') or ''} {own}".strip()
    return make_conninfo(**{**defaults, **given})


class Database:
    """Calls stored functions and turns their SQLSTATEs into `edge.errors`."""

    def __init__(self, pool: AsyncConnectionPool[Connection], *, answer_within: float) -> None:
        self._pool = pool
        self._answer_within = answer_within
        self._checking: asyncio.Task[None] | None = None

    async def one(self, row: type[Row], function: str, /, **arguments: object) -> Row:
        """
        Call a function that answers with exactly one row.

        Raises the `errors.EdgeError` that stands for the function's SQLSTATE. A SQLSTATE that no
        edge expects is a defect, and reaches the caller as `psycopg.Error`.
        """
        (answer,) = await self.rows(row, function, **arguments)
        return answer

    async def maybe(self, row: type[Row], function: str, /, **arguments: object) -> Row | None:
        """Call a function that answers with one row, or with none or null for "no such thing"."""
        found = await self._call(function, arguments, _mirror(row, nulls=True))
        return found[0] if found else None

    async def rows(self, row: type[Row], function: str, /, **arguments: object) -> list[Row]:
        """Call a function that answers with any number of rows."""
        return await self._call(function, arguments, _mirror(row))

    async def value(self, function: str, /, **arguments: object) -> Any:
        """Call a function that answers with one value."""
        ((answer,),) = await self._call(function, arguments, tuple_row)
        return answer

    async def values(self, function: str, /, **arguments: object) -> list[Any]:
        """Call a function that answers with any number of single values."""
        return [value for (value,) in await self._call(function, arguments, tuple_row)]

    async def _call(
        self, function: str, arguments: dict[str, object], factory: Callable[..., Any]
    ) -> list[Any]:
        with translated():
            try:
                async with self._pool.connection() as connection:
                    try:
                        cursor = connection.cursor(row_factory=factory)
                        async with asyncio.timeout(self._answer_within):
                            await cursor.execute(statement(function, arguments), arguments)
                            return await cursor.fetchall()
                    except psycopg.errors.FeatureNotSupported:
                        # The old plan lives as long as the session: the pool makes a new one.
                        await connection.close()
                        raise
            except psycopg.OperationalError:
                self._check_soon()
                raise

    async def recover(self, within: float) -> None:
        """After `errors.DatabaseDown`: wait until idle sessions that died too are sorted out."""
        await asyncio.wait({self._check_soon()}, timeout=within)

    def _check_soon(self) -> asyncio.Task[None]:
        # One lost connection seldom comes alone: after a failover all of them are dead.
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(_check(self._pool))
        return self._checking


@asynccontextmanager
async def connect(
    conninfo: str,
    *,
    role: str,
    max_size: int = 4,
    statement_timeout: float = 10.0,
    lock_timeout: float = 5.0,
    acquire_timeout: float = 3.0,
    settings: Mapping[str, str] | None = None,
    composites: Mapping[str, type[Any]] | None = None,
) -> AsyncIterator[Database]:
    """
    Open a pool for the lifetime of one process; it need not reach the database yet.

    `composites` maps SQL types of schema aivedio to the classes whose objects are passed as
    arguments of that type. `settings` are further session settings (name → value).
    """

    async def configure(connection: Connection) -> None:
        for name, mirror in (composites or {}).items():
            await _register(connection, name, mirror)

    async with AsyncConnectionPool(
        session(
            conninfo,
            role=role,
            statement_timeout=statement_timeout,
            lock_timeout=lock_timeout,
            settings=settings,
        ),
        connection_class=Connection,
        kwargs={"autocommit": True, "prepare_threshold": 0, "context": ADAPTERS},
        min_size=1,
        max_size=max_size,
        open=False,
        configure=configure,
        timeout=acquire_timeout,
        # After a failure the next caller asks for a connection anew, so a database that is back
        # is found at once: no long backoff of the pool's own.
        reconnect_timeout=2.0,
        max_waiting=max(64, 16 * max_size),
    ) as pool:
        yield Database(pool, answer_within=statement_timeout + GRACE)


@lru_cache(maxsize=512)
def _statement(function: str, arguments: tuple[tuple[str, bool], ...]) -> sql.Composed:
    """Build the call once per function and set of arguments, so that it stays prepared."""
    return sql.SQL("select * from aivedio.{}({})").format(
        sql.Identifier(function),
        sql.SQL(", ").join(
            sql.SQL("{} => {}").format(
                sql.Identifier(name),
                # Text format would quote the quotes of JSON inside a row inside an array.
                sql.Placeholder(name, format="b" if binary else "s"),
            )
            for name, binary in arguments
        ),
    )


def statement(function: str, arguments: Mapping[str, object]) -> sql.Composed:
    """Return the call of `aivedio.function` with these named arguments."""
    return _statement(
        function, tuple((name, _holds_composites(value)) for name, value in arguments.items())
    )


@contextmanager
def translated() -> Iterator[None]:
    """Re-raise psycopg's errors as ours, keeping the original as the cause."""
    try:
        yield
    except (PoolTimeout, PoolClosed, TooManyRequests) as error:
        raise errors.DatabaseDown("no connection became free") from error
    except TimeoutError as error:
        raise errors.DatabaseDown("no answer in time") from error
    except psycopg.Error as error:
        known = errors.from_sqlstate(error.sqlstate)
        if known is None or (error.sqlstate is None and not _lost(error)):
            raise
        if known is errors.NoPartition and error.diag.constraint_name:
            # A check of the row itself has the same SQLSTATE, and no waiting helps.
            raise
        raise known(
            error.diag.message_primary or "connection lost",
            code=error.sqlstate,
            detail=error.diag.message_detail,
            hint=error.diag.message_hint,
        ) from error


def _lost(error: psycopg.Error) -> bool:
    # Without a SQLSTATE psycopg itself complains: of the connection, or of how we called it.
    return isinstance(error, psycopg.OperationalError)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _holds_composites(value: object) -> bool:
    return isinstance(value, list) and bool(value) and dataclasses.is_dataclass(value[0])


def _mirror(row: type[Row], *, nulls: bool = False) -> Callable[..., Any]:
    """Return a row factory: columns by name into `row`; with `nulls`, an all-null row is None."""
    wanted = _field_names(row)

    def factory(cursor: psycopg.AsyncCursor[Any]) -> Callable[[Sequence[Any]], Row | None]:
        columns = [column.name for column in cursor.description or ()]
        places = [columns.index(name.rstrip("_")) for name in wanted] if columns else []

        def make(values: Sequence[Any]) -> Row | None:
            if nulls and all(value is None for value in values):
                return None
            return row(*[values[place] for place in places])

        return make

    return factory


def _field_names(row: type[Any]) -> tuple[str, ...]:
    if dataclasses.is_dataclass(row):
        return tuple(field.name for field in dataclasses.fields(row) if field.init)
    return tuple(row._fields)


def _attribute(column: str) -> str:
    """Return the attribute for a column: a Python keyword gets an underscore behind it."""
    return f"{column}_" if iskeyword(column) else column


async def _register(connection: Connection, name: str, mirror: type[Any]) -> None:
    info = await CompositeInfo.fetch(connection, sql.Identifier("aivedio", name))
    if info is None:
        raise errors.NotMigrated("the database lacks a type", detail=f"aivedio.{name}")
    register_composite(
        info,
        connection,
        mirror,
        make_object=lambda values, known: mirror(
            **dict(zip(map(_attribute, known.field_names), values, strict=True))
        ),
        make_sequence=lambda item, known: [
            getattr(item, _attribute(name)) for name in known.field_names
        ],
    )


async def _check(pool: AsyncConnectionPool[Connection]) -> None:
    try:
        await pool.check()
    except Exception:
        return


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    set_json_loads(orjson.loads, adapters)
    set_json_dumps(orjson.dumps, adapters)

    class TextDumper(JsonbDumper):
        _dumps = staticmethod(orjson.dumps)

    class BinaryDumper(JsonbBinaryDumper):
        _dumps = staticmethod(orjson.dumps)

    # psycopg prefers the dumper registered last.
    adapters.register_dumper(dict, BinaryDumper)
    adapters.register_dumper(dict, TextDumper)
    return adapters


ADAPTERS = _adapters()
