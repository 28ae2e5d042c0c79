"""
The state machine, altered in one place at a time.

A row of task_transitions is deleted, or says something else. A condition of a function is taken
away: an atom becomes what its neighbours do not notice (`and true`, `or false`), a lone one becomes
true, and false. Text is altered, not meaning, so that a condition added next year is altered too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.py.support.sqlfiles import FUNCTIONS

JUDGES = (
    *("_judge", "_judge_end", "_in_sequence", "_follows_attempt"),
    *("_update_attempt", "_apply_locked"),
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_CONDITION = re.compile(
    r"(?<!end )\b(?:if|elsif|when)\b(?P<guard>.*?)\bthen\b"
    r"|\bboolean\s*:=(?P<flag>.*?);"
    r"|\breturn\b(?P<answer>[^;]*?\b(?:and|or)\b[^;]*?);",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One alteration: statements that make it, and statements that undo it."""

    name: str
    apply: str
    undo: str


def mutants() -> list[Mutant]:
    """Return every alteration, in a fixed order."""
    return [*_transitions(), *(mutant for name in JUDGES for mutant in _function(name))]


def _transitions() -> Iterator[Mutant]:
    for status, observed, verdict, target in rows_of_the_machine():
        where = f"task_status = '{status}' and observed = '{observed}'"
        place = f"task_transitions: {status}, {observed}"
        kept = f"'{target}'" if target else "null"
        undo = (
            f"update aivedio.task_transitions set verdict = '{verdict}', new_status = {kept}"
            f" where {where}"
        )
        yield Mutant(
            f"{place}: deleted",
            f"delete from aivedio.task_transitions where {where}",
            "insert into aivedio.task_transitions values"
            f" ('{status}', '{observed}', '{verdict}', {kept})",
        )
        for other, becomes in _other_cells(status, observed, verdict, target):
            said = f"'{becomes}'" if becomes else "null"
            yield Mutant(
                f"{place}: {verdict} {target} becomes {other} {becomes}",
                f"update aivedio.task_transitions set verdict = '{other}', new_status = {said}"
                f" where {where}",
                undo,
            )


def _other_cells(
    status: str, observed: str, verdict: str, target: str | None
) -> list[tuple[str, str | None]]:
    """Return what a cell might wrongly say: another verdict, another target."""
    stays = "queued" if status in ("created", "submitting", "submitted") else status
    return {
        "applied": [
            ("duplicate", None),
            ("applied", {"running": "queued", "queued": "running"}.get(target or "", "running")),
        ],
        "progress": [("duplicate", None), ("applied", stays)],
        "duplicate": [("applied", stays), ("stale_status", None)],
        "stale_status": [("applied", observed), ("duplicate", None)],
        "terminal": [
            ("duplicate", None),
            ("applied", "provider_succeeded" if observed == "succeeded" else observed),
        ],
    }[verdict]


def rows_of_the_machine() -> list[tuple[str, str, str, str | None]]:
    """Return the rows that the migration inserts."""
    (path,) = (FUNCTIONS.parent / "migrations").glob("*_tasks.sql")
    _, values = path.read_text().split("insert into aivedio.task_transitions", 1)
    found = re.findall(r"\('(\w+)',\s+'(\w+)',\s+'(\w+)',\s+(?:'(\w+)'|null)\)", values)
    return [(a, b, c, d or None) for a, b, c, d in found]


def _function(name: str) -> Iterator[Mutant]:
    (path,) = FUNCTIONS.rglob(f"{name}.sql")
    text = path.read_text()
    seen: Counter[tuple[str, str]] = Counter()
    blank = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
    for found in _CONDITION.finditer(blank):
        group = next(key for key, value in found.groupdict().items() if value is not None)
        for start, end, instead in _atoms(blank, *found.span(group), None):
            was = " ".join(blank[start:end].split())
            if was in ("true", "false") or re.fullmatch(r"'\w+'", was):
                continue  # nothing to take away, or a value of a case
            seen[was, instead] += 1
            again = f" ({seen[was, instead]})" if seen[was, instead] > 1 else ""
            altered = f"{text[:start]} {instead} {text[end:]}"
            yield Mutant(f"{name}: {was} → {instead}{again}", altered, text)


def _atoms(text: str, start: int, end: int, word: str | None) -> Iterator[tuple[int, int, str]]:
    """Yield each part of a condition with what takes its place; `word` joins it to others."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    parts = _split(text, start, end)
    if len(parts) > 1:
        joined = text[parts[0][1] : parts[1][0]].strip()
        for low, high in parts:
            yield from _atoms(text, low, high, joined)
        if word is None:
            yield start, end, "false"
        return
    if text[start] == "(" and _closing(text, start) == end - 1:
        yield from _atoms(text, start + 1, end - 1, word)
        return
    if word is None:
        yield start, end, "false"
        yield start, end, "true"
    else:
        yield start, end, "true" if word == "and" else "false"


def _split(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the parts between the outermost `or`, or else `and`; one part when there is none."""
    for word in ("or", "and"):
        cuts = [
            (found.start(), found.end())
            for found in re.finditer(rf"\b{word}\b", text[start:end])
            if _depth(text, start, start + found.start()) == 0
        ]
        if cuts:
            edges = [start, *(start + place for cut in cuts for place in cut), end]
            return [(edges[n], edges[n + 1]) for n in range(0, len(edges), 2)]
    return [(start, end)]


def _depth(text: str, start: int, end: int) -> int:
    return text.count("(", start, end) - text.count(")", start, end)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError("a parenthesis is not closed")
