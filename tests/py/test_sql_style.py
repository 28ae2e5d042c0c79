"""
Every SQL file reads alike: what the catalog cannot tell and a linter does not see.

sqlfluff checks statements (see pyproject.toml), tests/sql/00_*.sql the catalog, this the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.py.support.schema import ROOT
from tests.py.support.sqlfiles import FunctionFile, function_files

LONGEST = 120
LONGEST_IN_TESTS = 200  # expectations are tables, read in columns
FILES = function_files()
MIGRATIONS = sorted((ROOT / "db" / "migrations").glob("*.sql"))
EVERY_SQL = sorted([*(ROOT / "db").rglob("*.sql"), *(ROOT / "tests").rglob("*.sql")])

each_function = pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.stem)


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


@each_function
def test_a_file_holds_the_one_function_that_it_is_named_after(file: FunctionFile) -> None:
    made = re.findall(r"create or replace (?:function|procedure) (\S+?)\(", file.code)
    assert made == [f"aivedio.{file.path.stem}"]


@each_function
def test_the_header_names_stage_area_and_function(file: FunctionFile) -> None:
    stage, area = file.path.parent.name.split("_", 1)
    assert file.text.startswith(f"/*\n * Stage {stage} · {area} · {file.path.stem}\n *\n * ")
    assert {"Called by", "Writes", "Locks"} <= fields(file).keys()
    assert fields(file).keys() <= {"Called by", "Writes", "Locks", "Raises"}


@each_function
def test_the_comment_names_the_stage(file: FunctionFile) -> None:
    stage = file.path.parent.name.split("_")[0]
    assert f"\ncomment on function aivedio.{file.path.stem} is\n  'Stage {stage}: " in file.text


@each_function
def test_the_body_is_delimited_by_the_functions_name(file: FunctionFile) -> None:
    name = re.escape(file.path.stem)
    assert re.search(rf"\nas \${name}\$\n.*\n\${name}\$;\n", file.text, re.DOTALL)
    attributes = file.text.split(f"\nas ${file.path.stem}$\n")[0]
    assert re.search(r"\nlanguage (sql|plpgsql)\n(volatile|stable|immutable)\b", attributes)
    assert "\nset search_path = ''\n" in attributes + "\n"


@each_function
def test_a_public_function_says_why_it_is_definer_and_grants_itself(file: FunctionFile) -> None:
    name = file.path.stem
    if name.startswith("_"):
        assert "security definer" not in file.code
        assert "grant " not in file.code
    else:
        assert re.search(r"\nsecurity definer  -- \w.{10,}\n", file.text)
        assert f"\ngrant execute on function aivedio.{name} to" in file.text


@each_function
def test_locals_start_with_v(file: FunctionFile) -> None:
    body = file.code.split(f"as ${file.path.stem}$")[1]
    for declared in re.findall(r"\bdeclare\n(.*?)\nbegin\n", body, re.DOTALL):
        for name in re.findall(r"^  (\w+) ", declared, re.MULTILINE):
            assert name.startswith("v_"), name


@each_function
def test_a_function_that_writes_a_table_says_so(file: FunctionFile) -> None:
    written = set(re.findall(r"\b(?:insert into|update|delete from) aivedio\.(\w+)", file.code))
    for table in written:
        assert f"aivedio.{table}" in fields(file)["Writes"], table


@each_function
def test_a_functions_callers_exist(file: FunctionFile) -> None:
    """Names in "Called by" that look like functions or files are functions or files."""
    known = {other.path.stem for other in FILES}
    for word in re.findall(r"(?<![\w/.])_\w+", fields(file)["Called by"]):
        assert word in known, f"{file.name}: {word}"
    for path in re.findall(r"\b(?:edge|relay)/[\w/]+\.py\b", fields(file)["Called by"]):
        assert (ROOT / path).exists(), f"{file.name}: {path}"


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: path.name)
def test_a_migration_says_what_it_makes(path: object) -> None:
    text = (ROOT / str(path)).read_text()
    number = str(path).rsplit("/", 1)[-1][:4]
    assert re.match(rf"-- migrate:up\n-- {number}  [A-Z]", text)


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:4]) for path in MIGRATIONS]
    assert numbers == list(range(1, len(numbers) + 1))


def lines() -> Iterator[tuple[str, str]]:
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
    assert bad == []


def test_files_end_with_one_newline() -> None:
    bad = [str(path) for path in EVERY_SQL if not re.search(r"[^\n]\n\Z", path.read_text())]
    assert bad == []


def test_bodies_are_in_lower_case() -> None:
    bad = [
        (file.name, word) for file in FILES for word in re.findall(r"\b[A-Z][A-Z_]+\b", file.code)
    ]
    assert bad == []
