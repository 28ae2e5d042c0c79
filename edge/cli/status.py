"""`aivedio status`: what `aivedio.pipeline_status()` says, laid out for a terminal."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from edge import database, errors


def show(database_url: str) -> int:
    """Print the status of the pipeline and return the exit status."""
    try:
        status = asyncio.run(_read(database_url))
    except errors.EdgeError as error:
        sys.stderr.write(f"The database does not answer: {error}\n")
        return 1
    sys.stdout.write("\n".join(layout(status)) + "\n")
    return 0


def layout(value: Any, depth: int = 0) -> list[str]:
    """Return JSON as indented lines, one value a line, names before values."""
    pad = "  " * depth
    if isinstance(value, dict):
        width = max((len(name) for name in value), default=0)
        lines = []
        for name, item in value.items():
            label = name.replace("_", " ")
            if isinstance(item, dict | list) and item:
                lines += [f"{pad}{label}", *layout(item, depth + 1)]
            else:
                lines.append(f"{pad}{label.ljust(width)}  {_plain(item)}")
        return lines
    if isinstance(value, list):
        return [
            line
            for item in value
            for line in (
                [f"{pad}- " + ", ".join(f"{name} {_plain(each)}" for name, each in item.items())]
                if isinstance(item, dict)
                else [f"{pad}- {_plain(item)}"]
            )
        ]
    return [pad + _plain(value)]


async def _read(database_url: str) -> Any:
    async with database.connect(database_url, role="aivedio_operator", max_size=1) as db:
        return await db.value("pipeline_status")


def _plain(value: Any) -> str:
    if value is None or value in ({}, []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
