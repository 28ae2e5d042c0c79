"""Which processes live, read from /proc: what a test of "nothing is left running" looks at."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


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


def python_for_everybody(place: Path) -> tuple[str, dict[str, str]]:
    """
    Return a Python that plain users may run with our packages, and the environment for it.

    Our own may lie below a closed folder such as /root; then `place` gets a copy of it.
    """
    environment = {**os.environ, "HOME": "/nonexistent"}
    own = Path(sys.executable).resolve()
    if all(folder.stat().st_mode & 0o001 for folder in (own, *own.parents)):
        return sys.executable, environment | {"PYTHONPATH": str(ROOT)}
    library = Path(sysconfig.get_path("stdlib"))
    program = place / "bin" / own.name
    program.parent.mkdir()
    shutil.copy2(own, program)
    shutil.copytree(
        library,
        place / "lib" / library.name,
        symlinks=True,
        ignore=shutil.ignore_patterns("test", "site-packages", "config-*"),
    )
    for shared in library.parent.glob("libpython*.so*"):
        shutil.copy2(shared, place / "lib")
        environment["LD_LIBRARY_PATH"] = str(place / "lib")
    packages = [str(ROOT)] + [path for path in sys.path if path.endswith("site-packages")]
    programs = [str(Path(sys.executable).parent), environment.get("PATH", "")]
    environment["PYTHONHOME"] = str(place)
    environment["PYTHONPATH"] = os.pathsep.join(packages)
    environment["PATH"] = os.pathsep.join(programs)
    return str(program), environment


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _has_open(pid: int, wanted: tuple[int, int]) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as descriptors:
            return any(_is(descriptor, wanted) for descriptor in descriptors)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def _is(descriptor: os.DirEntry[str], wanted: tuple[int, int]) -> bool:
    try:
        found = descriptor.stat()
    except OSError:
        return False  # closed meanwhile
    return (found.st_dev, found.st_ino) == wanted
