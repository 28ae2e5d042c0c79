"""Fills a template database with everything that `aivedio migrate` installs, and with makers."""

from __future__ import annotations

from pathlib import Path

import psycopg

from edge.cli.migrate import migrate

ROOT = Path(__file__).resolve().parents[3]
MAKERS = ROOT / "tests" / "sql" / "support" / "makers.sql"


def apply(conninfo: str) -> None:
    """
    Migrate an empty database, then add schema `fixture`.

    So tests of any kind make rows alike: `select fixture.task(p_status => 'running')`.
    """
    migrate(conninfo, lambda _line: None)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(MAKERS.read_bytes())
