"""Reads the SQL of the tree: files, function headers, code without comments and strings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.py.support.schema import ROOT

FUNCTIONS = ROOT / "db" / "functions"

_NOISE = re.compile(
    r"""
    --[^\n]*                      # a comment to the end of the line
    | /\*.*?\*/                   # a block comment
    | '(?:[^']|'')*'              # a string
    | "(?:[^"]|"")*"              # a quoted name
    """,
    re.VERBOSE | re.DOTALL,
)
_RAISE = re.compile(
    r"raise\s+exception\s+(?:using|'(?P<message>(?:[^']|'')*)')(?P<rest>[^;]*);",
    re.IGNORECASE,
)
_CODE = re.compile(r"errcode\s*=\s*'(?P<code>[^']+)'", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Raise:
    """One `raise exception` of a function."""

    function: str
    code: str | None
    message: str
    rest: str


@dataclass(frozen=True, slots=True)
class FunctionFile:
    """One file under db/functions."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Return the file's path below the project."""
        return str(self.path.relative_to(ROOT))

    @property
    def header(self) -> str:
        """Return the comment that opens the file."""
        return self.text.split("*/")[0]

    @property
    def code(self) -> str:
        """Return the text without comments, strings and quoted names, line by line the same."""
        return _NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), self.text)

    def raises(self) -> list[Raise]:
        """Return what the function raises, in order."""
        without_comments = re.sub(r"--[^\n]*|/\*.*?\*/", "", self.text, flags=re.DOTALL)
        found = []
        for match in _RAISE.finditer(without_comments):
            code = _CODE.search(match["rest"])
            message = (match["message"] or "").replace("''", "'")
            found.append(
                Raise(self.path.stem, code["code"] if code else None, message, match["rest"])
            )
        return found


def function_files() -> list[FunctionFile]:
    """Return every file under db/functions in the order in which they are applied."""
    return [FunctionFile(path, path.read_text()) for path in sorted(FUNCTIONS.rglob("*.sql"))]
