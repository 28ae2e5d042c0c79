"""Logs are kept short while others write to them."""

from __future__ import annotations

from pathlib import Path

from edge.cli import logfiles


def test_a_long_log_is_moved_aside_and_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "inbox.log"
    with logfiles.open_log(log) as writer:
        writer.write(b"before " * 10)
        writer.flush()
        logfiles.trim(tmp_path, limit=20)
        writer.write(b"after")
    assert log.read_bytes() == b"after"
    assert (tmp_path / "inbox.log.1").read_bytes() == b"before " * 10


def test_a_short_log_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "inbox.log").write_text("short")
    logfiles.trim(tmp_path, limit=20)
    assert (tmp_path / "inbox.log").read_text() == "short"
    assert not (tmp_path / "inbox.log.1").exists()


def test_last_words_are_the_end_and_never_a_failure(tmp_path: Path) -> None:
    assert logfiles.last_words(tmp_path / "none.log") == ""
    (tmp_path / "much.log").write_text("\n".join(f"line {n}" for n in range(9999)))
    assert logfiles.last_words(tmp_path / "much.log", 2) == "    line 9997\n    line 9998"
