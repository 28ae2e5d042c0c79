"""The page has words for all that the database may say."""

from __future__ import annotations

import re

from edge.console.app import STATIC
from tests.py.conftest import Connect
from tests.py.support.sessions import value
from tests.py.support.sqlfiles import function_files

WORDS = (STATIC / "console" / "words.js").read_text()


def explained(table: str) -> set[str]:
    """Return the names that a table of the page has a sentence for."""
    body = re.search(rf"export const {table} = \{{\n(.*?)\n\}};", WORDS, re.DOTALL)
    assert body is not None
    return set(re.findall(r"^  (\w+):", body[1], re.MULTILINE))


def text_of(name: str) -> str:
    (file,) = [file for file in function_files() if file.path.stem == name]
    return file.text


def test_every_alarm_is_explained() -> None:
    kinds: set[str] = set()
    for file in function_files():
        kinds |= set(re.findall(r"_raise_alarm\(\s*'(\w+)'", file.text))
        kinds |= set(re.findall(r"v_alarms \|\| '(\w+)'", file.text))
        kinds |= set(re.findall(r"\.alarm := [^;']*'(\w+)'", file.text))
    for looking in ("_watch_queues", "check_streams"):
        kinds |= set(re.findall(r"select\s+'(\w+)'(?: as kind)?,", text_of(looking)))
    kinds |= set(re.findall(r"return '(\w+)'", text_of("_learn_from_submit")))
    meanings = re.search(
        r"meaning in \(([^)]*)\) then\s+v_alarms := v_alarms \|\| \('poll_' \|\|",
        text_of("_reschedule_poll"),
    )
    assert meanings is not None
    kinds |= {f"poll_{meaning}" for meaning in re.findall(r"\w+", meanings[1])}
    assert len(kinds) > 25
    assert explained("ALARMS") == kinds


def test_every_reason_to_wait_is_explained() -> None:
    header = (
        next(file for file in function_files() if file.path.stem == "_waiting_reasons")
    ).header
    assert explained("REASONS") == set(re.findall(r"^ \*   (\w+)  ", header, re.MULTILINE))


def test_every_case_and_resolution_is_explained(connect: Connect) -> None:
    check = value(
        connect(),
        "select pg_get_constraintdef(oid) from pg_constraint"
        " where conname = 'reconciliation_cases_kind'",
    )
    assert explained("CASES") == set(re.findall(r"'(\w+)'", check))
    assert explained("RESOLUTIONS") == set(
        re.findall(r"v_may \|\| '(\w+)'", text_of("_resolutions"))
    )
