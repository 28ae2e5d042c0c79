"""The commands for people answer in plain words."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

from edge.cli.processes import PROCESSES
from edge.cli.status import layout
from tests.py.conftest import Connect
from tests.py.support.sessions import rows, value


def aivedio(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("AIVEDIO_")}
    return subprocess.run(
        [sys.executable, "-m", "edge.cli.app", *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_version_is_the_package_s() -> None:
    assert aivedio("version").stdout.strip() == metadata.version("aivedio-control")


def test_help_lists_every_process_but_the_pretended_ones() -> None:
    shown = aivedio("--help").stdout
    for process in PROCESSES.values():
        assert (process.name in shown) is not process.hidden


def test_a_profile_is_checked_against_its_pretender(database: str) -> None:
    answer = aivedio("providers", "check", "runway", "--database", database)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    lines = answer.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines[:-1])
    assert lines[-1] == f"runway: {len(lines) - 1} ok, 0 wrong"
    again = aivedio("providers", "check", "runway", "--database", database)
    assert again.returncode == 2
    assert "a check needs one of its own" in again.stderr


def test_a_profile_that_is_not_shipped_is_not_checked() -> None:
    answer = aivedio("providers", "check", "nobody")
    assert answer.returncode == 2
    assert "There is no profile nobody" in answer.stderr


def test_status_shows_every_stage(database: str) -> None:
    answer = aivedio("status", AIVEDIO_DATABASE_URL=database)
    assert answer.returncode == 0, answer.stderr
    for stage in ("inbox", "polls", "outbox", "media"):
        assert stage in answer.stdout


def test_status_of_a_database_that_is_away_says_so() -> None:
    answer = aivedio("status", AIVEDIO_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert answer.returncode == 1
    assert "does not answer" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_database_that_is_away_is_no_traceback_for_migrate_either() -> None:
    answer = aivedio("migrate", AIVEDIO_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr


def test_settings_are_listed_without_what_is_secret() -> None:
    answer = aivedio(
        "settings",
        AIVEDIO_DATABASE_URL="postgresql://me:hush@db/aivedio",
        AIVEDIO_JWT_SECRET="hush" * 10,
        AIVEDIO_TRUSTED_PROXIES="10.0.0.0/8",
    )
    assert answer.returncode == 0, answer.stderr
    assert "hush" not in answer.stdout
    assert "AIVEDIO_DATABASE_URL = **********\n" in answer.stdout
    assert "AIVEDIO_TRUSTED_PROXIES = 10.0.0.0/8\n" in answer.stdout
    assert "AIVEDIO_REDIS_URL not set\n" in answer.stdout
    assert "AIVEDIO_DRAIN_SECONDS is 5.0 unless set\n" in answer.stdout


def test_the_doctor_says_what_is_wrong_and_what_to_do(database: str) -> None:
    answer = aivedio("doctor", AIVEDIO_DATABASE_URL=database)
    assert answer.returncode == 1, answer.stderr
    assert "✓ clock: the same as the database's\n" in answer.stdout
    assert "✗ Redis: not set\n    Set AIVEDIO_REDIS_URL.\n" in answer.stdout
    assert "Traceback" not in answer.stderr


def test_a_callback_is_rehearsed_and_then_applied(database: str, connect: Connect) -> None:
    session = connect(autocommit=True)
    rows(session, "select fixture.job('task', 'queued')")
    rows(session, "select aivedio.accept_callbacks(array[fixture.delivery('e1', 'task')])")
    callback = str(value(session, "select id from aivedio.provider_callback_inbox"))
    status = "select status from aivedio.generation_tasks"
    rehearsed = aivedio("replay", callback, AIVEDIO_DATABASE_URL=database)
    assert rehearsed.returncode == 0, rehearsed.stderr
    assert "applied" in rehearsed.stdout
    assert value(session, status) == "queued"
    unexplained = aivedio("replay", callback, "--apply", AIVEDIO_DATABASE_URL=database)
    assert unexplained.returncode == 2
    applied = aivedio(
        "replay", callback, "--apply", "--why", "urgent", AIVEDIO_DATABASE_URL=database
    )
    assert applied.returncode == 0, applied.stderr
    assert value(session, status) == "running"
    again = aivedio("replay", callback, "--apply", "--why", "urgent", AIVEDIO_DATABASE_URL=database)
    assert again.returncode == 1
    assert "callback has had its effect" in again.stderr


def test_a_link_for_an_operator(database: str, connect: Connect) -> None:
    where = {
        "AIVEDIO_DATABASE_URL": database,
        "AIVEDIO_CONSOLE_URL": "https://operators.example.net",
    }
    answer = aivedio("operator-link", "--role", "act", "--who", "ops@example.com", **where)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("https://operators.example.net/login?token=")
    assert value(connect(), "select claims from aivedio.one_time_tokens") == {
        "operator": "act",
        "sub": "ops@example.com",
    }
    nobody = aivedio("operator-link", "--who", " ", **where)
    assert (nobody.returncode, nobody.stdout) == (1, "")
    assert "Say who" in nobody.stderr
    nowhere = aivedio("operator-link", AIVEDIO_DATABASE_URL=database)
    assert nowhere.returncode == 2
    assert "AIVEDIO_CONSOLE_URL" in nowhere.stderr


def test_a_status_is_laid_out_one_value_a_line() -> None:
    status = {
        "inbox_dead": 0,
        "polls": {"due": 2, "scheduled": None},
        "alarms": [{"kind": "flood", "count": 3}],
        "cases": [],
    }
    assert layout(status) == [
        "inbox dead  0",
        "polls",
        "  due        2",
        "  scheduled  none",
        "alarms",
        "  - kind flood, count 3",
        "cases       none",
    ]
