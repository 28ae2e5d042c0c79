"""Secrets by reference."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from edge.intake.secrets import Secrets


async def test_a_variable_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from a file\n")
    secrets = Secrets({"KEY": "from a variable"})
    assert await secrets.resolve("env:KEY") == "from a variable"
    assert await secrets.resolve(f"file:{file}") == "from a file"


@pytest.mark.parametrize(
    "reference",
    ["env:MISSING", "env:EMPTY", "env:", "file:/does/not/exist", "file:relative", "KEY", "", "x:y"],
)
async def test_what_leads_nowhere_is_none(reference: str) -> None:
    assert await Secrets({"EMPTY": " "}).resolve(reference) is None


async def test_what_is_no_secret_is_none(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "huge").write_bytes(b"a" * 100_000)
    secrets = Secrets({})
    assert await secrets.resolve(f"file:{tmp_path}/binary") is None
    assert await secrets.resolve(f"file:{tmp_path}/huge") is None
    assert await secrets.resolve(f"file:{tmp_path}") is None


async def test_a_rotated_file_counts_after_a_few_seconds(tmp_path: Path) -> None:
    now = 0.0
    file = tmp_path / "key"
    file.write_text("old")
    secrets = Secrets({}, remembered_for=5, clock=lambda: now)
    reference = f"file:{file}"
    assert await secrets.resolve(reference) == "old"
    file.write_text("new")
    now = 4.9
    assert await secrets.resolve(reference) == "old"
    now = 5.0
    assert await secrets.resolve(reference) == "new"


async def test_a_file_that_hangs_holds_up_nobody_and_is_opened_once(tmp_path: Path) -> None:
    """A named pipe that nobody writes to is a file whose open never returns."""
    pipe = tmp_path / "key"
    os.mkfifo(pipe)
    secrets = Secrets({"KEY": "there"})
    waiting = [asyncio.create_task(secrets.resolve(f"file:{pipe}")) for _ in range(5)]
    try:
        assert await secrets.resolve("env:KEY") == "there"
        assert not any(task.done() for task in waiting)
        waiting[0].cancel()
    finally:
        # One reader has it open, or the opening would fail; the one that gave up took nothing away.
        writer = await asyncio.to_thread(os.open, pipe, os.O_WRONLY)
        os.write(writer, b"late\n")
        os.close(writer)
    assert await asyncio.gather(*waiting[1:]) == ["late"] * 4
