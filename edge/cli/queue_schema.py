"""Installs pgmq, the embedded bus, from the SQL that its wheel ships; its SQL runs only once."""

from __future__ import annotations

from importlib import resources

import psycopg

GRANTS = """\
  grant usage, create on schema pgmq to aivedio_owner;
  grant select, insert, update, delete on all tables in schema pgmq to aivedio_owner;
  grant execute on all functions in schema pgmq to aivedio_owner;"""

_INSTALLED = "select pg_catalog.to_regnamespace('pgmq') is not null"

_USABLE = """
select pg_catalog.has_schema_privilege('aivedio_owner', 'pgmq', 'usage')
   and pg_catalog.has_schema_privilege('aivedio_owner', 'pgmq', 'create')
   and pg_catalog.has_table_privilege('aivedio_owner', 'pgmq.meta', 'insert')
"""

# pgmq's functions run with the rights of their caller, and dropping or altering a queue needs
# its owner. So the role that calls them owns everything, and makes the queues itself.
_HAND_OVER = """
do $hand_over$
declare
  v_object text;
begin
  grant usage, create on schema pgmq to aivedio_owner;
  for v_object in
    select pg_catalog.format('table %s', relation.oid::pg_catalog.regclass)
    from pg_catalog.pg_class as relation
    where relation.relnamespace = 'pgmq'::pg_catalog.regnamespace and relation.relkind = 'r'
    union all
    select pg_catalog.format('type %s', relation.reltype::pg_catalog.regtype)
    from pg_catalog.pg_class as relation
    where relation.relnamespace = 'pgmq'::pg_catalog.regnamespace and relation.relkind = 'c'
    union all
    select pg_catalog.format('routine %s', routine.oid::pg_catalog.regprocedure)
    from pg_catalog.pg_proc as routine
    where routine.pronamespace = 'pgmq'::pg_catalog.regnamespace
  loop
    execute 'alter ' || v_object || ' owner to aivedio_owner';
  end loop;
end;
$hand_over$
"""


class QueueUnusable(Exception):
    """Somebody else installed pgmq here, and our owner role may not use it."""


def install(connection: psycopg.Connection[object]) -> bool:
    """
    Make pgmq usable by aivedio_owner and answer whether it had to be installed.

    One transaction: a killed run leaves either nothing or everything. `connection` must be in
    autocommit mode.
    """
    if _answer(connection, _INSTALLED):
        if not _answer(connection, _USABLE):
            raise QueueUnusable(
                "Schema pgmq exists, but role aivedio_owner may not use it. "
                f"Its owner should run:\n\n{GRANTS}"
            )
        return False
    script = resources.files("pgmq").joinpath("sql/pgmq.sql").read_bytes()
    with connection.transaction():
        connection.execute(script)
        connection.execute(_HAND_OVER)
    return True


def _answer(connection: psycopg.Connection[object], query: str) -> bool:
    row = connection.execute(query.encode()).fetchone()
    return row == (True,)
