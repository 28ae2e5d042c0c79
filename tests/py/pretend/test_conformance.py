"""Each shipped profile meets a provider that pretends, and does what that one needs."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from typing import Any

import pytest

from edge.pretend import conformance
from edge.pretend.dialects import DIALECTS
from edge.pretend.samples import SAMPLES
from edge.pretend.verdicts import Row
from tests.py.support.clusters import Cluster
from tests.py.support.ports import free_ports
from tests.py.support.schema import ROOT

GROUPS = 8
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


# Most of a check is waiting, so several go at once.
@pytest.mark.parametrize("group", range(GROUPS))
async def test_profiles_do_what_their_providers_need(group: int, cluster: Cluster) -> None:
    async def checked(name: str) -> list[Row]:
        database = f"t_{uuid.uuid4().hex[:12]}"
        url = await asyncio.to_thread(cluster.create_database, database)
        try:
            return await conformance.check(
                name, profile_of(name), database_url=url, ports=ports(), within_s=60.0
            )
        finally:
            await asyncio.to_thread(cluster.drop_database, database)

    names = [path.stem for path in PROFILES[group::GROUPS]]
    for name, rows in zip(names, await asyncio.gather(*map(checked, names)), strict=True):
        assert len(rows) > 15
        assert not told(rows), f"{name}\n{told(rows)}"


def test_every_shipped_profile_has_its_pretender_and_its_sample() -> None:
    names = {path.stem for path in PROFILES}
    assert names == set(DIALECTS) == set(SAMPLES)


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({"words": {"poll": {"processing": "queued"}}}, "poll running"),
        ({"words": {"webhook": {"succeeded": "running"}}}, "callback succeeded"),
        ({"submit": {"accepted": [200]}}, "poll succeeded"),
    ],
)
async def test_a_profile_with_a_mistake_is_found_out(
    change: dict[str, Any], row: str, database: str
) -> None:
    profile = profile_of("replicate")
    for name, value in change.items():
        profile[name] |= value
    rows = await conformance.check(
        "replicate", profile, database_url=database, ports=ports(), within_s=3.0
    )
    assert row in {one.name for one in rows if not one.ok}
