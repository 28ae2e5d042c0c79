"""A page on a database of the test's own, empty or where much has gone wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.py.conftest import Connect
from tests.py.console.running import Console, running
from tests.py.console.seed import Seed, fault_ridden


@pytest.fixture
def seed(connect: Connect) -> Seed:
    return fault_ridden(connect())


@pytest.fixture
async def console(database: str, free_port: Callable[[], int]) -> AsyncIterator[Console]:
    async with running(database, free_port()) as started:
        yield started
