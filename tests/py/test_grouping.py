"""Tests of one group run on one worker: those of a server that all of them share and some kill."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("grouping")
def test_a_group_is_kept_together(request: pytest.FixtureRequest) -> None:
    distributed = hasattr(request.config, "workerinput")
    assert request.node.nodeid.endswith("@grouping") or not distributed
