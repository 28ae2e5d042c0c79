"""docs/sql.md is what the catalog says."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy import sql_page

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"


@pytest.mark.both_versions
def test_the_page_is_what_the_catalog_says(database: str) -> None:
    """`make docs` makes it again."""
    assert PAGE.read_text() == sql_page.render(sql_page.read(database))


def test_every_stage_has_a_title(database: str) -> None:
    assert {one.stage for one in sql_page.read(database)} <= sql_page.STAGES.keys()
