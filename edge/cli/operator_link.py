"""`aivedio operator-link`: a link that logs an operator in once."""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import secrets
import sys

from edge import database, errors


def show(database_url: str, console_url: str, role: str, who: str) -> int:
    """Print a link and return the exit status."""
    try:
        link = asyncio.run(_connected(database_url, console_url, role, who))
    except errors.Rejected as error:
        sys.stderr.write("\n".join(filter(None, [str(error), error.hint])) + "\n")
        return 1
    except errors.EdgeError as error:
        sys.stderr.write(f"The database does not answer: {error}\n")
        return 1
    sys.stdout.write(f"{link}\n")
    sys.stderr.write("It works once, for ten minutes.\n")
    return 0


async def make(db: database.Database, console_url: str, role: str, who: str) -> str:
    """Return a link; the database keeps only its token's hash."""
    token = secrets.token_urlsafe(32)
    await db.value(
        "issue_operator_token",
        p_token_hash=hashlib.sha256(token.encode()).digest(),
        p_role=role,
        p_who=who,
        p_session=secrets.token_urlsafe(12),
    )
    return f"{console_url}/login?token={token}"


def somebody(otherwise: str) -> str:
    """Return the name of who runs this, if the system knows it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return otherwise


async def _connected(database_url: str, console_url: str, role: str, who: str) -> str:
    async with database.connect(database_url, role="aivedio_operator", max_size=1) as db:
        return await make(db, console_url, role, who)
