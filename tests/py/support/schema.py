"""Fills a template database with everything that `aivedio migrate` installs."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parents[3]


def apply(conninfo: str, url: str) -> None:
    """Install migrations, the embedded bus, functions and providers into an empty database."""
    del url
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for path in sorted((ROOT / "db" / "migrations").glob("*.sql")):
            with connection.transaction():
                connection.execute(path.read_text())
        with connection.transaction():
            connection.execute("create schema if not exists pgmq authorization aivedio_owner")
            name = connection.info.dbname
            connection.execute(f'grant create on database "{name}" to aivedio_owner')
            connection.execute("set local role aivedio_owner")
            connection.execute(files("pgmq").joinpath("sql", "pgmq.sql").read_text())
        with connection.transaction():
            connection.execute("set local role aivedio_owner")
            for folder in ("functions", "providers"):
                for path in sorted((ROOT / "db" / folder).rglob("*.sql")):
                    try:
                        connection.execute(path.read_text())
                    except psycopg.Error as error:
                        error.add_note(str(path))
                        raise
        connection.execute("select aivedio.ensure_bus()")
