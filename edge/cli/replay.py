"""`aivedio replay`: rehearses a stored callback, or applies one that is dead or waiting."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from edge import database, errors
from edge.cli.status import layout


def show(database_url: str, callback: int, who: str, why: str, *, apply: bool) -> int:
    """Print what the callback does, or would do, and return the exit status."""
    try:
        told = asyncio.run(_replay(database_url, callback, who, why, apply))
    except errors.DatabaseDown as error:
        sys.stderr.write(f"The database does not answer: {error}\n")
        return 1
    except errors.EdgeError as error:
        sys.stderr.write("\n".join(filter(None, [str(error), error.detail, error.hint])) + "\n")
        return 1
    sys.stdout.write("\n".join(layout(told)) + "\n")
    return 0


async def _replay(database_url: str, callback: int, who: str, why: str, apply: bool) -> Any:
    async with database.connect(database_url, role="aivedio_operator", max_size=1) as db:
        return await db.value(
            "replay_callback", p_inbox=callback, p_who=who, p_why=why, p_dry_run=not apply
        )
