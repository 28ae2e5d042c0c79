"""docs/cases.md lists every case once, and each test that it names exists."""

from __future__ import annotations

import re

from tests.py.support.schema import ROOT

PAGE = ROOT / "docs" / "cases.md"
ROW = re.compile(r"^\| (?P<case>[A-Z]\d+) \| (?P<what>[^|]+) \| (?P<proof>[^|]+) \|$", re.MULTILINE)
CASES = {
    "S": (1, 2, 4, 5, 7, 8, 10, 11),
    "W": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29),
    "P": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16),
    "O": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28),
    "C": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26),
    "R": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17),
    "G": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20),
    "B": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17),
    "A": (1, 2, 4, 5, 7, 8),
}


def rows() -> list[tuple[str, str, str]]:
    found = ROW.finditer(PAGE.read_text())
    return [(row["case"], row["what"], row["proof"]) for row in found]


def test_every_case_is_listed_once_in_order() -> None:
    expected = [f"{group}{number}" for group, numbers in CASES.items() for number in numbers]
    assert [case for case, _, _ in rows()] == expected


def test_every_case_is_proven_or_says_why_not() -> None:
    for case, what, proof in rows():
        assert re.fullmatch(r"[A-Z].{10,160}\.", what), case
        tests = re.findall(r"`([^`]+)`", proof)
        reasoned = re.fullmatch(r"(cannot apply|not yet): \S.{5,}", proof)
        assert tests or reasoned, case


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for case, _, proof in rows():
        for named in re.findall(r"`([^`]+)`", proof):
            path, _, function = named.partition("::")
            file = ROOT / path
            defined = rf"^\s*(async )?def {function}\("
            if not file.is_file() or (
                function and not re.search(defined, file.read_text(), re.MULTILINE)
            ):
                missing.append(f"{case}: {named}")
    assert missing == []
