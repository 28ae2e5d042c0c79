"""
Prints docs/sql.md: the SQL functions that may be called, as a database's catalog describes them.

    python deploy/sql_page.py DATABASE_URL > docs/sql.md

The database must be migrated to this tree's version. A test compares the page with the catalog.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

OPENING = """\
# The SQL functions

Made by `make docs` from the catalog; the same rows come from `select * from aivedio.describe()`,
and those of one role from `aivedio.describe('operator')`. Functions are the interface: tables are
private and change without notice. Every function that changes something by hand wants to know who
and why, and leaves a row in `operator_actions`. Errors are listed in
[db/ERRORS.md](../db/ERRORS.md).

Roles are named without their prefix: `operator` stands for `aivedio_operator`.
"""
STAGES = {
    "00": "Base",
    "10": "Inbox",
    "20": "Polls and submissions",
    "30": "Providers and observations",
    "40": "Tasks and attempts",
    "50": "Events",
    "60": "Outbox and bus",
    "70": "Consumers, media, credits",
    "80": "Snapshots, replay, access",
    "90": "Operating",
}
# Whom a reader is likely to be: people first, then processes.
PEOPLE = ("operator", "app")


class Function(NamedTuple):
    """A row of aivedio.describe()."""

    stage: str
    name: str
    arguments: str
    returns: str
    roles: list[str] | None
    meaning: str


def read(database_url: str) -> list[Function]:
    """Return what the catalog knows, in the order of the stages."""
    with psycopg.connect(database_url) as session:
        rows = session.cursor(row_factory=class_row(Function))
        return rows.execute("select * from aivedio.describe()").fetchall()


def render(functions: Iterable[Function]) -> str:
    """Return the page: what people call first, then what the processes call, each by stage."""
    known = list(functions)
    people = [one for one in known if set(one.roles or ()) & set(PEOPLE)]
    processes = [one for one in known if one not in people]
    return "\n".join(
        [
            OPENING,
            "## For people and applications\n",
            *_stages(people),
            "## For the processes\n",
            *_stages(processes),
        ]
    )


def _stages(functions: list[Function]) -> Iterable[str]:
    for number, title in STAGES.items():
        of_stage = [one for one in functions if one.stage == number]
        if of_stage:
            yield f"### {number} {title}\n"
            yield from (_entry(one) for one in of_stage)


def _entry(one: Function) -> str:
    roles = ", ".join(one.roles or ["owner only"])
    meaning = one.meaning.replace("|", "\\|")
    call = f"`{one.name}({one.arguments})` → `{one.returns}`"
    return f"- **{one.name}** ({roles})  \n  {call}  \n  {meaning}\n"


if __name__ == "__main__":
    sys.stdout.write(render(read(sys.argv[1])))
