"""db/ERRORS.md lists exactly the codes that SQL raises, HTTP answers and tasks carry."""

from __future__ import annotations

import re

import pytest

from edge import errors
from edge.console import problems as console_problems
from edge.gateway import problems as gateway_problems
from edge.intake import problems as webhook_problems
from tests.py.support.schema import ROOT
from tests.py.support.sqlfiles import function_files

ERRORS = ROOT / "db" / "ERRORS.md"


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading."""
    _, found, section = ERRORS.read_text().partition(f"\n{heading}\n")
    assert found, heading
    rows = []
    for line in section.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def test_every_raise_has_a_code_of_ours_and_a_constant_message() -> None:
    for file in function_files():
        for entry in file.raises():
            assert re.fullmatch(r"VC\d{3}", entry.code or ""), f"{file.name}: {entry}"
            assert "%" not in entry.message, f"{file.name}: values belong into DETAIL: {entry}"


def test_the_list_is_what_sql_raises() -> None:
    raised: dict[str, tuple[set[str], set[str]]] = {}
    for file in function_files():
        for entry in file.raises():
            messages, functions = raised.setdefault(entry.code or "", (set(), set()))
            messages.add(entry.message)
            functions.add(entry.function)
    listed = {
        code: (set(messages.split("; ")), set(re.findall(r"`(\w+)`", functions)))
        for code, messages, functions, _ in table("## From SQL")
    }
    assert listed == raised


def test_codes_are_listed_in_order_and_once() -> None:
    codes = [row[0] for row in table("## From SQL")]
    assert codes == sorted(set(codes))


def test_a_functions_header_names_what_it_raises() -> None:
    for file in function_files():
        for entry in file.raises():
            assert str(entry.code) in file.header, (
                f"{file.name} does not say that it raises {entry.code}"
            )


def test_what_the_gateway_answers_for_a_code() -> None:
    listed = {code: answer for code, _, _, answer in table("## From SQL") if answer}
    assert listed == dict(gateway_problems._BY_SQLSTATE)


def test_the_gateways_problems() -> None:
    listed = {code: (int(status), title) for code, status, title in table("### Gateway")}
    assert listed == dict(gateway_problems.CODES)


def test_the_operators_pages_problems() -> None:
    listed = {code: (int(status), title) for code, status, title in table("### Operators' page")}
    assert listed == dict(console_problems.OWN)
    _, _, section = ERRORS.read_text().partition("### Operators' page")
    sentence = section.partition("### ")[0].splitlines()[-2]
    told = {
        sqlstate: code
        for clause in sentence.split(";")
        for code in re.findall(r"`(\w+)`", clause)
        for sqlstate in re.findall(r"VC\d{3}", clause)
    }
    assert told == dict(console_problems.BY_SQLSTATE)


def test_the_webhook_ports_problems() -> None:
    assert {code: title for code, title in table("### Webhook port")} == webhook_problems.TITLES


def test_the_public_codes_of_tasks() -> None:
    (file,) = [file for file in function_files() if file.path.stem == "_public_error_message"]
    worded = set(re.findall(r"when '(\w+)'", file.text)) | {"unknown"}
    assert {row[0] for row in table("## On a task")} == worded


@pytest.mark.parametrize(
    ("sqlstate", "name"),
    [
        ("40001", "Contended"),
        ("40P01", "Contended"),
        ("55P03", "Contended"),
        ("23514", "NoPartition"),
        ("57014", "TooSlow"),
        ("0A000", "Outdated"),
        ("42501", "NotMigrated"),
        ("42704", "NotMigrated"),
        ("42883", "NotMigrated"),
        ("42P01", "NotMigrated"),
        ("3F000", "NotMigrated"),
        ("22P05", "BadValue"),
        ("08006", "DatabaseDown"),
        ("53300", "DatabaseDown"),
        ("57P01", "DatabaseDown"),
        ("58030", "DatabaseDown"),
        ("VC404", "Rejected"),
    ],
)
def test_postgresqls_own_codes(sqlstate: str, name: str) -> None:
    found = errors.from_sqlstate(sqlstate)
    assert found is not None
    assert found.__name__ == name
    assert f"`{name}`" in ERRORS.read_text() or name == "Rejected"
