"""The log files of `aivedio up`: appended to by many, kept from growing for ever by one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import BinaryIO

LIMIT = 16 * 1024 * 1024
_EVERY = 30.0


def open_log(log: Path) -> BinaryIO:
    """Open a log for a child to append to."""
    return open(log, "ab")


def trim(folder: Path, limit: int = LIMIT) -> None:
    """
    Move what is in each log that is longer than `limit` to a file beside it, named .1.

    Whoever writes keeps the file open, so it is emptied, not replaced: appending then goes on
    at its start. A line that is written between the two steps is lost.
    """
    for log in folder.glob("*.log"):
        if log.stat().st_size > limit:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            with open(log, "r+b") as stream:
                stream.truncate(0)


async def keep_short(folder: Path) -> None:
    """Trim every log now and then, until cancelled."""
    while True:
        await asyncio.to_thread(trim, folder)
        await asyncio.sleep(_EVERY)


def last_words(log: Path, lines: int = 8) -> str:
    """Return the end of a log, indented; empty when there is none."""
    try:
        with open(log, "rb") as stream:
            stream.seek(max(0, log.stat().st_size - 16384))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return indented_tail(text, lines)


def indented_tail(text: str, lines: int = 8) -> str:
    """Return the last lines of a text, indented, none of them endless."""
    return "\n".join("    " + line[:2000] for line in text.strip().splitlines()[-lines:])
