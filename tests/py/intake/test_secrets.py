"""Secrets by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.intake.secrets import Secrets


def test_a_variable_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from a file\n")
    secrets = Secrets({"KEY": "from a variable"})
    assert secrets.resolve("env:KEY") == "from a variable"
    assert secrets.resolve(f"file:{file}") == "from a file"


@pytest.mark.parametrize(
    "reference",
    ["env:MISSING", "env:EMPTY", "env:", "file:/does/not/exist", "file:relative", "KEY", "", "x:y"],
)
def test_what_leads_nowhere_is_none(reference: str) -> None:
    assert Secrets({"EMPTY": " "}).resolve(reference) is None


def test_what_is_no_secret_is_none(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "huge").write_bytes(b"a" * 100_000)
    secrets = Secrets({})
    assert secrets.resolve(f"file:{tmp_path}/binary") is None
    assert secrets.resolve(f"file:{tmp_path}/huge") is None
    assert secrets.resolve(f"file:{tmp_path}") is None


def test_a_rotated_file_counts_after_a_few_seconds(tmp_path: Path) -> None:
    now = 0.0
    file = tmp_path / "key"
    file.write_text("old")
    secrets = Secrets({}, remembered_for=5, clock=lambda: now)
    reference = f"file:{file}"
    assert secrets.resolve(reference) == "old"
    file.write_text("new")
    now = 4.9
    assert secrets.resolve(reference) == "old"
    now = 5.0
    assert secrets.resolve(reference) == "new"
