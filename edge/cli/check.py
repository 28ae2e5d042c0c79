"""
`aivedio providers check`: a shipped profile, a provider that pretends, and servers for the while.

Nothing is left behind but, where a database was given, the jobs in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from edge import errors, logs
from edge.cli import account, embedded, folder, layout, migrate, tree
from edge.cli.display import Display
from edge.pretend import conformance

_PROFILE = re.compile(r"\$profile\$(.*?)\$profile\$", re.DOTALL)
_EXPECTED = (
    account.NoAccount,
    conformance.CannotCheck,
    embedded.ServerFailed,
    errors.EdgeError,
    folder.FolderUnusable,
    layout.PortTaken,
    migrate.CannotMigrate,
    tree.NoTree,
    psycopg.OperationalError,
)


def check(name: str, database_url: str | None, timeout: float) -> int:
    """Print what a profile makes of its provider; return 0 if all is well, 2 if nobody can say."""
    logs.configure("check", "error")
    # The table says what went wrong; servers that hang up on order would only look alarming.
    logging.disable(logging.ERROR)
    display = Display()
    try:
        profile = shipped(name)
        with _database(database_url, display) as url:
            display.step("Bringing the database to this version")
            migrate.migrate(url, display.detail)
            with layout.places(None, True, url, "") as where:
                display.step(f"Checking {name}")
                rows = asyncio.run(
                    conformance.check(
                        name,
                        profile,
                        database_url=url,
                        ports=(where.webhook, where.provider, where.gateway),
                        within_s=timeout,
                    )
                )
                display.done()
    except _EXPECTED as error:
        display.broke()
        sys.stderr.write(f"{error}\n")
        return 2
    wide = max(len(row.name) for row in rows)
    for row in rows:
        sys.stdout.write(f"{'ok   ' if row.ok else 'WRONG'}  {row.name:<{wide}}  {row.seen}\n")
    wrong = sum(not row.ok for row in rows)
    sys.stdout.write(f"{name}: {len(rows) - wrong} ok, {wrong} wrong\n")
    return 1 if wrong else 0


def shipped(name: str) -> dict[str, Any]:
    """Return a profile of db/providers. Raises `CannotCheck`."""
    paths = {path.stem: path for path in tree.find().providers}
    if name not in paths:
        raise conformance.CannotCheck(
            f"There is no profile {name}: use one of {', '.join(sorted(paths))}."
        )
    found = _PROFILE.search(paths[name].read_text())
    if found is None:
        raise conformance.CannotCheck(f"{paths[name]} holds no $profile$.")
    profile: dict[str, Any] = json.loads(found[1])
    return profile


@contextmanager
def _database(given: str | None, display: Display) -> Iterator[str]:
    """Yield the URL of the given database, else of a server that lives as long as the block."""
    if given is not None:
        yield given
        return
    with (
        folder.owned(None, account.for_servers()) as data,
        embedded.running(data, display.step) as servers,
    ):
        try:
            yield servers.database_url
        finally:
            display.step("Stopping the servers")
    display.done()
