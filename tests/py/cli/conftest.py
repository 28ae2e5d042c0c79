"""Folders for embedded servers; pytest's own are closed to the user that they run as."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_ENOUGH = 1 << 30


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder in memory where there is enough: these tests are not about disks."""
    fits = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH
    yield from _made(_MEMORY if fits else Path("/tmp"))


@pytest.fixture
def disk_place() -> Iterator[Path]:
    """Return a folder that programs may be run from."""
    yield from _made(Path("/tmp"))


def _made(base: Path) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="av-up-", dir=base))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)
