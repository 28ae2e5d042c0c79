"""Each shipped profile meets a provider that pretends, and does what that one needs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from edge.pretend import conformance
from edge.pretend.conformance import Row
from tests.py.support.ports import free_ports
from tests.py.support.schema import ROOT

PROFILES = sorted((ROOT / "db" / "providers").glob("*.sql"))


def profile_of(name: str) -> dict[str, Any]:
    text = (ROOT / "db" / "providers" / f"{name}.sql").read_text()
    found = re.search(r"\$profile\$(.*?)\$profile\$", text, re.DOTALL)
    assert found is not None
    profile: dict[str, Any] = json.loads(found[1])
    return profile


def ports() -> tuple[int, int, int]:
    first = free_ports(3)
    return first, first + 1, first + 2


def told(rows: list[Row]) -> str:
    return "\n".join(f"{row.name}: {row.seen}" for row in rows if not row.ok)


@pytest.mark.parametrize("name", [path.stem for path in PROFILES])
async def test_a_profile_does_what_its_provider_needs(name: str, database: str) -> None:
    rows = await conformance.check(
        name, profile_of(name), database_url=database, ports=ports(), within_s=60.0, faults=False
    )
    assert not told(rows), told(rows)
