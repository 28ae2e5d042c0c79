"""A data folder has one owner, and its lock tells whether anything of it still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge.cli import account, folder


def test_a_child_that_is_left_behind_is_noticed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_comes_free", _impatient(folder._comes_free))
    with pytest.raises(folder.FolderUnusable, match="still runs"):
        with folder.owned(place, account.for_servers()) as data:
            left = subprocess.Popen(
                [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[data.lock]
            )
    left.communicate(b"\n")
    with folder.owned(place, account.for_servers()):
        pass


def test_secrets_are_made_once(place: Path) -> None:
    with folder.owned(place, account.for_servers()) as first:
        made = first.secrets
    with folder.owned(place, account.for_servers()) as second:
        assert second.secrets == made


def test_the_lock_names_its_owner(place: Path) -> None:
    with folder.owned(place, account.for_servers()):
        assert (place / "lock").read_text() == f"{os.getpid()}\n"
        with pytest.raises(folder.FolderUnusable, match=f"process {os.getpid()}"):
            with folder.owned(place, account.for_servers()):
                pass


def _impatient(comes_free: object) -> object:
    def at_once(lock: int, patience: float = 0.0) -> bool:
        return comes_free(lock, 0.0)  # type: ignore[operator, no-any-return]

    return at_once
