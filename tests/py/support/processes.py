"""Which processes live, read from /proc: what a test of "nothing is left running" looks at."""

from __future__ import annotations

import os
from pathlib import Path


def alive(pid: int) -> bool:
    """Answer whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    """Return the direct children of a process."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(text) for text in found]


def descendants(pid: int) -> list[int]:
    """Return all processes below one."""
    below = children(pid)
    return below + [each for child in below for each in descendants(child)]


def command(pid: int) -> str:
    """Return a process's command line, or "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def holding(lock: Path) -> list[int]:
    """Return every process that has a file open, such as the lock of a data folder."""
    try:
        wanted = lock.stat()
    except FileNotFoundError:
        return []
    return [pid for pid in _pids() if _has_open(pid, (wanted.st_dev, wanted.st_ino))]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _has_open(pid: int, wanted: tuple[int, int]) -> bool:
    try:
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            try:
                found = descriptor.stat()
            except OSError:
                continue  # closed meanwhile
            if (found.st_dev, found.st_ino) == wanted:
                return True
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    return False
