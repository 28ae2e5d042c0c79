"""What holds for the tree as a whole."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.py.support.schema import ROOT

LONGEST_FILE = 600
SOURCES = ("edge", "relay", "tests/py")

# Things of the people who build this, of which the tree knows nothing. Put together here, so that
# this file does not mention them either.
FOREIGN = re.compile(
    "|".join(
        [
            r"\.\./" + "shared",
            r"\.lib" + "rary",
            "/work" + "/",
            r"\bissue" + r" #?\d",
            r"(?<![\w/.-])#" + r"\d{1,3}\b(?![^\n]*\b(color|fill|background)\b)(?!\d)",
        ]
    )
)

# A process writes no SQL other than calls of stored functions, and these.
PLAIN = re.compile(
    r"\s*(select\s+1\s*$|(un)?listen\b|set\s|reset\s|begin\b|commit\b|rollback\b|show\s|discard\s)",
    re.IGNORECASE,
)
CALL = re.compile(
    r"\s*select\s[^;]*\baivedio\.(\w+|\{\})\s*\([^;]*$",
    re.IGNORECASE | re.DOTALL,
)
VERB = re.compile(
    r"\s*(select\s.+|insert\s+into\s.+|update\s+[\w.\"]+\s+set\s.+|delete\s+from\s.+|merge\s+into\s.+"
    r"|with\s+\w+\s+as\s*\(.+|copy\s+[\w.(]+.*\s(from|to)\s.+|truncate\s+\w+.*"
    r"|(create|alter|drop)\s+(table|index|function|role|schema|sequence|type)\b.+)",
    re.IGNORECASE | re.DOTALL,
)
# They install and start databases; the rules of edges are not theirs.
INSTALLERS = {
    "edge/cli/dbmate.py",
    "edge/cli/migrate.py",
    "edge/cli/queue_schema.py",
    "edge/cli/embedded.py",
}


def files() -> list[Path]:
    """Return the files of the tree, new ones too, that are text."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    return [ROOT / name for name in sorted(set(listed)) if name and (ROOT / name).is_file()]


def texts() -> Iterator[tuple[str, str]]:
    for path in files():
        try:
            yield str(path.relative_to(ROOT)), path.read_text()
        except UnicodeDecodeError:
            continue


def test_nothing_mentions_what_is_not_in_the_tree() -> None:
    found = [
        (name, match[0])
        for name, text in texts()
        if not name.endswith((".css", ".html", ".svg", ".json"))
        for match in FOREIGN.finditer(text)
    ]
    assert found == []


def test_documents_that_are_mentioned_exist() -> None:
    """A path is read from the project's root or from beside the file; a bare name from anywhere."""
    known = {path.name for path in files()}
    found = []
    for name, text in texts():
        for mentioned in re.findall(r"(?<![\w/:.-])((?:[\w-]+/)*[\w-]+\.md)\b", text):
            beside = (ROOT / name).parent / mentioned
            if mentioned not in known and not (ROOT / mentioned).exists() and not beside.exists():
                found.append((name, mentioned))
    assert found == []


def test_files_are_short() -> None:
    found = [
        (name, text.count("\n"))
        for name, text in texts()
        if name.startswith((*SOURCES, "db/", "tests/sql/"))
        if name.endswith((".py", ".sql")) and text.count("\n") > LONGEST_FILE
    ]
    assert found == []


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module but its docstrings, with gaps for what f-strings put in."""
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "?"
                    for part in node.values
                ),
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation | inside
        ):
            yield node.lineno, node.value


def test_processes_contain_no_sql_but_calls() -> None:
    found = []
    for folder in ("edge", "relay"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if name in INSTALLERS:
                continue
            for line, text in strings(ast.parse(path.read_text())):
                if VERB.fullmatch(text) and not (PLAIN.match(text) or CALL.fullmatch(text)):
                    found.append((f"{name}:{line}", text[:100]))
    assert found == []


def test_no_registry_is_named_in_the_pins() -> None:
    pins = (ROOT / "constraints.txt").read_text()
    assert "://" not in pins
    assert "--" not in pins


def test_every_dependency_is_pinned() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    names = {re.match(r"[\w.-]+", line)[0].lower() for line in wanted if re.match(r"[\w.-]+", line)}  # type: ignore[index]
    pinned = {
        re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    names = {re.sub(r"[-_.]+", "-", name) for name in names} - {project["name"]}
    assert names <= pinned, names - pinned
