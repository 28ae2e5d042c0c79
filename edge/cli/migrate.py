"""
`aivedio migrate`: brings a database to this version, from nothing or from any older one.

    1  one advisory lock, waited for with a bound; who holds it is said
    2  migration sessions whose process was killed are ended
    3  checksums: an applied migration must not have changed, none may be unknown to this tree
    4  dbmate applies the missing migrations, one transaction each
    5  pgmq, once, in one transaction
    6  every function, then every provider, then the bus's queues, in one transaction as
       aivedio_owner
    7  the queues of consumer groups that have none yet

Each step goes on from what a run that was killed left; two runs at once do everything once. It
needs no superuser: a role with CREATEROLE, and CREATE on the database.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from edge.cli import dbmate, queue_schema
from edge.cli.tree import Migration, Tree, find

Say = Callable[[str], None]
Connection = psycopg.Connection[tuple[object, ...]]

LOCK = 0x61_69_76_65_64_69_6F  # "aivedio", within this database
APPLICATION_NAME = "aivedio migrate"
OLDEST_SERVER = 150000

_WHO_HOLDS = """
select format(
  'process %%s of user %%s%%s%%s', activity.pid, activity.usename,
  coalesce(' at ' || host(activity.client_addr), ''),
  coalesce(', since ' || date_trunc('second', activity.backend_start)::text, '')
)
from pg_catalog.pg_locks as held
join pg_catalog.pg_stat_activity as activity using (pid)
where held.locktype = 'advisory' and held.granted and held.objsubid = 1
  and held.database = (select oid from pg_catalog.pg_database where datname = current_database())
  and ((held.classid::bigint << 32) | held.objid::bigint) = %s
"""

_ORPHANS = """
select pg_catalog.pg_terminate_backend(activity.pid)
from pg_catalog.pg_stat_activity as activity
where activity.datname = current_database() and activity.usename = current_user
  and activity.application_name = %s
"""

_CHECKSUMS = """
create table if not exists aivedio.schema_checksums (
  version  text        primary key,
  sha256   bytea       not null,
  noted_at timestamptz not null default now()
)
"""

# Another role that may act as the owner can run the next migration.
_SHARE = """
grant select, insert, update, delete
on aivedio.schema_checksums, aivedio.schema_migrations to aivedio_owner
"""

_NOTE = """
insert into aivedio.schema_checksums (version, sha256)
values (%s, %s)
on conflict (version) do update set sha256 = excluded.sha256, noted_at = now()
where schema_checksums.sha256 <> excluded.sha256
"""

_VALIDATE = """
select pg_catalog.fmgr_sql_validator(function.oid)
from pg_catalog.pg_proc as function
join pg_catalog.pg_language as language on language.oid = function.prolang
where function.pronamespace = 'aivedio'::regnamespace and language.lanname = 'sql'
"""


class CannotMigrate(Exception):
    """The database was not brought to this version; the text says why and what to do."""


def migrate(
    conninfo: str, say: Say, *, tree: Tree | None = None, lock_timeout: float = 60.0
) -> None:
    """
    Bring the database at `conninfo` to the version of `tree`, reporting steps to `say`.

    Raises CannotMigrate with a message for a person. Nothing half-done stays behind: call it
    again after the cause is gone.
    """
    tree = tree or find()
    with _connect(conninfo) as session:
        _check_server(session)
        _take_lock(session, say, lock_timeout)
        _end_orphans(session, lock_timeout)
        _note_checksums(session, tree)
        try:
            for line in dbmate.apply(session, tree.migrations_folder):
                say(line)
            if queue_schema.install(session):
                say("Installed pgmq")
        except (dbmate.MigrationFailed, queue_schema.QueueUnusable) as error:
            raise CannotMigrate(str(error)) from error
        count = _apply_functions(session, tree)
        say(f"Applied {count} function and provider files")
        for group in _ensure_bus(session):
            say(f"Made the queue of consumer group {group}")


def _connect(conninfo: str) -> Connection:
    try:
        return psycopg.connect(
            conninfo, autocommit=True, application_name=APPLICATION_NAME, connect_timeout=10
        )
    except psycopg.OperationalError as error:
        raise CannotMigrate(f"The database does not answer: {error}") from error


def _check_server(session: Connection) -> None:
    if session.info.server_version < OLDEST_SERVER:
        raise CannotMigrate(
            f"PostgreSQL {session.info.parameter_status('server_version')} is too old: "
            "use 15 or newer."
        )
    if session.info.parameter_status("server_encoding") != "UTF8":
        raise CannotMigrate("The database's encoding must be UTF8: create it with encoding 'UTF8'.")


def _take_lock(session: Connection, say: Say, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    told = ""
    while session.execute("select pg_try_advisory_lock(%s)", [LOCK]).fetchone() != (True,):
        row = session.execute(_WHO_HOLDS, [LOCK]).fetchone()
        holder = str(row[0]) if row else told
        if holder != told:
            say(f"Waiting: another migration is running ({holder})")
            told = holder
        if time.monotonic() > deadline:
            raise CannotMigrate(
                f"Another migration has held its lock for {timeout:.0f} s ({told}). "
                "Let it finish, or end that process, and run this again."
            )
        time.sleep(random.uniform(0.05, 0.25))


def _end_orphans(session: Connection, timeout: float) -> None:
    """
    End dbmate sessions of this database: we hold the lock, so nobody waits for them any more.

    A killed dbmate leaves a server process that still runs its last statement.
    """
    deadline = time.monotonic() + timeout
    while session.execute(_ORPHANS, [dbmate.APPLICATION_NAME]).fetchone() is not None:
        if time.monotonic() > deadline:
            raise CannotMigrate("The session of a killed migration does not end.")
        time.sleep(0.05)


def _note_checksums(session: Connection, tree: Tree) -> None:
    """
    Refuse a database that this tree does not fit, then note what is about to be applied.

    Noted before it is applied: a run that is killed in between leaves no migration unwitnessed.
    """
    if session.execute("select to_regnamespace('aivedio') is null").fetchone() == (True,):
        session.execute("create schema if not exists aivedio")
    applied = _applied(session)
    with session.transaction():
        if session.execute("select to_regclass('aivedio.schema_checksums') is null").fetchone() == (
            True,
        ):
            session.execute(_CHECKSUMS)
        rows = session.execute("select version, sha256 from aivedio.schema_checksums").fetchall()
        noted = {str(version): sha256 for version, sha256 in rows}
        _check_fit(tree.migrations, applied, noted)
        for migration in tree.migrations:
            session.execute(_NOTE, [migration.version, migration.sha256])


def _applied(session: Connection) -> set[str]:
    if session.execute("select to_regclass(%s) is null", [dbmate.MIGRATIONS_TABLE]).fetchone() == (
        True,
    ):
        return set()
    rows = session.execute("select version from aivedio.schema_migrations").fetchall()
    return {str(version) for (version,) in rows}


def _check_fit(migrations: list[Migration], applied: set[str], noted: dict[str, object]) -> None:
    known = {migration.version for migration in migrations}
    if newer := sorted(applied - known):
        raise CannotMigrate(
            f"The database is newer than this version of aivedio: it has migration "
            f"{', '.join(newer)}. Use the version that made it, or a later one."
        )
    changed = [
        migration.path.name
        for migration in migrations
        if migration.version in applied
        and noted.get(migration.version, migration.sha256) != migration.sha256
    ]
    if changed:
        raise CannotMigrate(
            f"{', '.join(changed)} changed after this database had applied it. Put the file back "
            "as it was, and make the change in a new migration."
        )


def _apply_functions(session: Connection, tree: Tree) -> int:
    files = [*tree.functions, *tree.providers]
    with session.transaction():
        session.execute(_SHARE)
        session.execute("set local role aivedio_owner")
        # A file may call a function of a later file, so bodies are checked when all are there.
        session.execute("set local check_function_bodies = off")
        for path in tree.functions:
            _apply_file(session, tree, path)
        session.execute("set local check_function_bodies = on")
        session.execute(_VALIDATE)
        for path in tree.providers:
            _apply_file(session, tree, path)
        session.execute("select aivedio.ensure_bus()")
    return len(files)


def _ensure_bus(session: Connection) -> list[str]:
    if session.execute("select to_regproc('aivedio.ensure_bus') is null").fetchone() == (True,):
        return []
    with session.transaction():
        session.execute("set local role aivedio_owner")
        made = session.execute("select aivedio.ensure_bus()").fetchall()
    return [str(group) for (group,) in made]


def _apply_file(session: Connection, tree: Tree, path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    try:
        session.execute(script.encode())
    except psycopg.Error as error:
        position = error.diag.statement_position
        line = script.count("\n", 0, int(position)) + 1 if position else 1
        parts = [f"{tree.name(path)}:{line}: {error.diag.message_primary or error}"]
        parts += [part for part in (error.diag.message_detail, error.diag.message_hint) if part]
        raise CannotMigrate("\n".join(parts)) from error
