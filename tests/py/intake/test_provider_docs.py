"""docs/providers.md is true: its example runs, and its tables name what the profiles name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.py.intake.jobs import Jobs
from tests.py.support.schema import ROOT

PAGE = (ROOT / "docs" / "providers.md").read_text()
BLOCK = re.compile(r"^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
EXAMPLE = BLOCK.findall(PAGE.split("## Add one")[1])

Connect = Callable[..., psycopg.Connection[Any]]


def table(text: str) -> list[list[str]]:
    """Return the cells of a table as psql or Markdown draws it, without the line."""
    rows = [line.strip().strip("|").split("|") for line in text.splitlines() if "|" in line]
    return [[cell.strip() for cell in row] for row in rows if not set("".join(row)) <= set("-+ ")]


def run(session: psycopg.Connection[Any], statement: str) -> str:
    """Return what psql would show for a statement, roughly."""
    try:
        cursor = session.execute(statement)
    except psycopg.Error as error:
        said = error.diag
        return (
            f"ERROR:  {said.message_primary}\n"
            f"DETAIL:  {said.message_detail}\nHINT:  {said.message_hint}\n"
        )
    assert cursor.description is not None
    lines = [[column.name for column in cursor.description]]
    lines += [["" if value is None else str(value) for value in row] for row in cursor.fetchall()]
    return "\n".join(" | ".join(line) + " " for line in lines)


def test_the_example_of_a_new_provider_runs(connect: Connect) -> None:
    session = connect("aivedio_operator", autocommit=True)
    assert len(EXAMPLE) == 3
    for statement, expected in EXAMPLE:
        shown = run(session, statement)
        if expected.startswith("ERROR"):
            assert shown == expected
        elif expected:
            assert table(shown) == table(expected)


def test_its_requests_are_what_its_documentation_says(connect: Connect, jobs: Jobs) -> None:
    run(connect("aivedio_operator", autocommit=True), EXAMPLE[0][0])
    jobs.session.execute(
        "select aivedio.create_task(%s, %s, gen_random_uuid(), 'lumen', 'lumen-1',"
        ' \'{"prompt": "a whale", "reference": "theirs"}\')',
        [jobs.tenant, jobs.project],
    )
    row = jobs.session.execute(
        "select method, url, body - 'notify_url' - 'reference', body ->> 'notify_url',"
        " body ->> 'reference' from aivedio.claim_submits('w', 1, 'https://us.example')"
    ).fetchone()
    assert row is not None
    ((client,),) = jobs.attempts("client_request_id")
    assert row[:3] == (
        "POST",
        "https://api.lumen.example/v2/jobs",
        {"model": "lumen-1", "prompt": "a whale"},
    )
    assert re.fullmatch(r"https://us\.example/callbacks/lumen/[A-Za-z0-9_-]{43}", row[3])
    assert row[4] == client


def sections(heading: str) -> dict[str, list[str]]:
    """Return the table below a heading by the provider in its first column."""
    text = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {row[0].strip("`"): row for row in table(text) if row[0].startswith("`")}


def references(value: object) -> set[str]:
    """Return all variables that a part of a profile names, but those for a rotation."""
    found = re.findall(r"env:([A-Z_]+)", str(value))
    return {name for name in found if not name.endswith("_PREVIOUS")}


def test_the_table_of_secrets_names_those_of_each_profile(jobs: Jobs) -> None:
    rows = sections("Turn one on")
    profiles = dict(jobs.session.execute("select name, profile from aivedio.providers").fetchall())
    assert rows.keys() == profiles.keys()
    for name, profile in profiles.items():
        webhook = profile.get("webhook") or {}
        said = [set(re.findall(r"`([A-Z_]+)`", cell)) for cell in rows[name]]
        assert said[1] == references(profile["auth"]), name
        assert said[2] == references(webhook), name
        submits = str(profile["submit"])
        way = "none" if not webhook else "per job" if "{callback_url}" in submits else "register"
        assert rows[name][3].startswith(way), name
        hints = webhook and (
            not webhook.get("signed", True)
            or webhook.get("thin", False)
            or webhook["scheme"] == "vidu-hmac"
        )
        assert ("hints" in rows[name][3]) == bool(hints), name


def test_the_table_of_knowledge_agrees_with_each_profile(jobs: Jobs) -> None:
    rows = sections("What the shipped profiles know")
    profiles = dict(jobs.session.execute("select name, profile from aivedio.providers").fetchall())
    assert rows.keys() == profiles.keys()
    for name, profile in profiles.items():
        _, _, _, progress, cancel, _, polls = rows[name]
        assert (progress != "none") == bool(profile["fields"].get("progress")), name
        assert (cancel == "never") == (profile["cancel"] is None), name
        fresh = bool((profile["cancel"] or {}).get("only_when"))
        assert ("fresh poll" in cancel) == fresh, name
        number = re.search(r"\d+", polls)
        assert number is not None and float(number[0]) == profile["quota"]["provider"], name


CHECKS = ("_profile_problems", "_auth_problems", "_one_request_problems", "_place_problems")


@pytest.mark.parametrize("check", CHECKS)
def test_each_key_that_is_known_is_explained(check: str) -> None:
    source = (ROOT / "db" / "functions" / "30_observation" / f"{check}.sql").read_text()
    lists = re.findall(r"(?:v_known|v_common)\s+constant text\[\] := (.*?);", source, re.DOTALL)
    keys = set(re.findall(r"'([a-z_]+)'", "".join(lists))) - {"submit", "poll", "cancel"}
    assert len(keys) > 5
    words = set(re.findall(r"[a-z_]+", "".join(re.findall(r"`[^`\n]+`", PAGE))))
    assert keys <= words, keys - words
