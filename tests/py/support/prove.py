"""
`make test-sql`: runs the pgTAP files on PostgreSQL 15 and on 18.

    python -m tests.py.support.prove [--version 15] [FILE…]

Each version gets a throw-away cluster with a migrated database. pgTAP sits in schema tap. The SQL
of Debian's pgTAP serves both versions. plpgsql_check exists for 15 only, so its file runs there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from tests.py.support.clusters import VERSIONS, Cluster, Run, installed_binaries
from tests.py.support.schema import ROOT

SQL = ROOT / "tests" / "sql"
ONLY_ON_15 = SQL / "support" / "plpgsql_check.sql"
DATABASE = "aivedio_test"
TIMEOUT = 600.0


def main() -> int:
    """Run the files on each version at the same time; answer 0 if everything passed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", type=int, choices=VERSIONS, action="append")
    parser.add_argument("files", nargs="*", type=Path)
    asked = parser.parse_args()
    if shutil.which("pg_prove") is None:
        sys.stderr.write("pg_prove is missing: run tests/install_packages.sh\n")
        return 2
    versions = asked.version or VERSIONS
    run = Run.begin()
    try:
        with ThreadPoolExecutor(len(versions)) as threads:
            results = list(threads.map(lambda v: prove(run, v, asked.files), versions))
    finally:
        run.end()
    for version, result in zip(versions, results, strict=True):
        sys.stdout.write(f"PostgreSQL {version}\n{result.stdout}")
    return max(result.returncode for result in results)


def prove(run: Run, version: int, files: list[Path]) -> subprocess.CompletedProcess[str]:
    """Run pg_prove on one version."""
    cluster = run.cluster(version)
    cluster.create_database(DATABASE)
    psql = prepare(cluster)
    everything = sorted(SQL.glob("*.sql")) + ([ONLY_ON_15] if version == 15 else [])
    return run_files(cluster, DATABASE, psql, files or everything)


def run_files(
    cluster: Cluster, database: str, psql: str, files: list[Path]
) -> subprocess.CompletedProcess[str]:
    """Run pg_prove on files in a database that `prepare` has prepared."""
    return subprocess.run(
        [
            *("pg_prove", "--psql-bin", psql, "--ext", ".sql"),
            *(str(path) for path in files),
        ],
        env={
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "PGHOST": cluster.socket,
            "PGPORT": str(cluster.port),
            "PGUSER": "postgres",
            "PGDATABASE": database,
            "PGOPTIONS": "-c search_path=public,tap -c client_min_messages=warning",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )


def prepare(cluster: Cluster, database: str = DATABASE) -> str:
    """Put pgTAP into schema tap, readable by every role, and return the psql to use."""
    psql = str(installed_binaries(15) / "psql")
    conninfo = cluster.conninfo(database)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("create schema tap")
        connection.execute("grant usage on schema tap to public")
        if cluster.version == 15:
            connection.execute("create extension pgtap schema tap")
            connection.execute("create extension plpgsql_check schema tap")
            return psql
    share = subprocess.run(
        [installed_binaries(15) / "pg_config", "--sharedir"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    subprocess.run(
        [psql, "-X", "-1", "-q", "-v", "ON_ERROR_STOP=1", "-d", conninfo]
        + ["-f", str(Path(share) / "extension" / "pgtap.sql")],
        check=True,
        stdout=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "PGOPTIONS": "-c search_path=tap"},
    )
    return psql


if __name__ == "__main__":
    sys.exit(main())
