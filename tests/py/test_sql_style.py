"""
Every SQL file reads alike: what the catalog cannot tell and a linter does not see.

sqlfluff checks statements (see pyproject.toml), tests/sql/00_*.sql the catalog, this the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tests.py.support.schema import ROOT
from tests.py.support.sqlfiles import FunctionFile, function_files

LONGEST = 120
LONGEST_IN_TESTS = 200  # expectations are tables, read in columns
FILES = function_files()
NAMES = {file.path.stem for file in FILES}
MIGRATIONS = sorted((ROOT / "db" / "migrations").glob("*.sql"))
EVERY_SQL = sorted([*(ROOT / "db").rglob("*.sql"), *(ROOT / "tests").rglob("*.sql")])


def fields(file: FunctionFile) -> dict[str, str]:
    """Return the header's fields, each with its text on one line."""
    found: dict[str, str] = {}
    field = ""
    for line in file.header.splitlines():
        if match := re.match(r" \* ([A-Z][a-z]+(?: by)?) {2,}(\S.*)", line):
            field = match[1]
            found[field] = match[2]
        elif field and (match := re.match(r" \* {5,}(\S.*)", line)):
            found[field] += " " + match[1]
        else:
            field = ""
    return found


@cache
def calls() -> dict[str, set[str]]:
    """Return, by function, the functions that it calls."""
    return {file.path.stem: set(re.findall(r"\baivedio\.(\w+)\s*\(", file.code)) for file in FILES}


def callers(file: FunctionFile) -> set[str]:
    """Return the functions that call this one."""
    own = file.path.stem
    return {other for other, called in calls().items() if own in called and other != own}


def test_a_file_holds_the_one_function_that_it_is_named_after() -> None:
    for file in FILES:
        made = re.findall(r"create or replace (?:function|procedure) (\S+?)\(", file.code)
        assert made == [f"aivedio.{file.path.stem}"], file.name


def test_the_header_names_stage_area_and_function() -> None:
    for file in FILES:
        stage, area = file.path.parent.name.split("_", 1)
        opening = f"/*\n * Stage {stage} · {area} · {file.path.stem}\n *\n * "
        assert file.text.startswith(opening), file.name
        given = fields(file).keys()
        assert {"Called by", "Writes", "Locks"} <= given, file.name
        assert given <= {"Called by", "Writes", "Locks", "Raises"}, file.name


def test_the_comment_names_the_stage() -> None:
    for file in FILES:
        stage = file.path.parent.name.split("_")[0]
        comment = f"\ncomment on function aivedio.{file.path.stem} is\n  'Stage {stage}: "
        assert comment in file.text, file.name


def test_attributes_come_first_and_the_body_is_delimited_by_the_functions_name() -> None:
    for file in FILES:
        name = re.escape(file.path.stem)
        body = re.search(rf"\nas \${name}\$\n.*\n\${name}\$;\n", file.text, re.DOTALL)
        assert body, file.name
        attributes = file.text[: body.start()] + "\n"
        kind = r"\nlanguage (sql|plpgsql)\n(volatile|stable|immutable)\b"
        assert re.search(kind, attributes), file.name
        assert "\nset search_path = ''\n" in attributes, file.name


def test_a_public_function_says_why_it_is_definer_and_grants_itself() -> None:
    for file in FILES:
        if file.path.stem.startswith("_"):
            assert "security definer" not in file.code, file.name
            assert "grant " not in file.code, file.name
        else:
            assert re.search(r"\nsecurity definer  -- \w.{10,}\n", file.text), file.name
            grant = f"\ngrant execute on function aivedio.{file.path.stem} to"
            assert grant in file.text, file.name


def test_locals_start_with_v() -> None:
    for file in FILES:
        body = file.code.split(f"as ${file.path.stem}$")[1]
        for declared in re.findall(r"\bdeclare\n(.*?)\nbegin\n", body, re.DOTALL):
            for name in re.findall(r"^  (\w+) ", declared, re.MULTILINE):
                assert name.startswith("v_"), f"{file.name}: {name}"


def test_a_function_that_writes_a_table_says_so() -> None:
    for file in FILES:
        written = re.findall(r"\b(?:insert into|update|delete from) aivedio\.(\w+)", file.code)
        for table in sorted(set(written)):
            assert f"aivedio.{table}" in fields(file)["Writes"], f"{file.name}: {table}"


def test_a_private_functions_callers_are_the_ones_it_names() -> None:
    """Or it says "every …", and a sentence about which."""
    for file in FILES:
        if not file.path.stem.startswith("_"):
            continue
        text = fields(file)["Called by"]
        named = {word for word in re.findall(r"\w+", text) if word in NAMES}
        if text.startswith("every"):
            assert named <= callers(file), file.name
        else:
            assert named == callers(file), file.name


def test_the_processes_that_call_a_function_exist() -> None:
    for file in FILES:
        for path in re.findall(r"\b(?:edge|relay)/[\w/]+(?:\.py)?\b", fields(file)["Called by"]):
            assert (ROOT / path).exists(), f"{file.name}: {path}"


def test_no_private_function_is_left_over() -> None:
    # A profile may name a function of its own.
    profiles = "".join(path.read_text() for path in (ROOT / "db" / "providers").glob("*.sql"))
    for file in FILES:
        name = file.path.stem
        assert not name.startswith("_") or callers(file) or name in profiles, file.name


def test_migrations_are_numbered_and_say_what_they_make() -> None:
    numbers = [int(path.name[:4]) for path in MIGRATIONS]
    assert numbers == list(range(1, len(numbers) + 1))
    for path in MIGRATIONS:
        opening = rf"-- migrate:up\n-- {path.name[:4]}  [A-Z]"
        assert re.match(opening, path.read_text()), path.name


def lines() -> Iterator[tuple[str, str]]:
    """Yield every line of SQL and where it is."""
    for path in EVERY_SQL:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def test_lines_are_clean_and_of_readable_length() -> None:
    bad = [
        where
        for where, line in lines()
        if line != line.rstrip()
        or "\t" in line
        # A line that is one string, as in comments on tables, cannot be broken.
        or (
            len(line) > (LONGEST_IN_TESTS if where.startswith("tests") else LONGEST)
            and not re.match(r" *\(?'", line)
            and not where.startswith("db/providers")
        )
    ]
    assert not bad, "\n".join(bad)


def test_files_end_with_one_newline() -> None:
    bad = [str(path) for path in EVERY_SQL if not re.search(r"[^\n]\n\Z", path.read_text())]
    assert not bad, "\n".join(bad)


def test_bodies_are_in_lower_case() -> None:
    for file in FILES:
        assert re.findall(r"\b[A-Z][A-Z_]+\b", file.code) == [], file.name
