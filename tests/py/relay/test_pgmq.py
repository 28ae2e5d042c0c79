"""The embedded bus keeps the contract of `relay.bus`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from relay import pgmq
from relay.bus import Message
from tests.py.relay.conftest import Outage
from tests.py.relay.contract import BusContract, Stage, message


def poison(task: UUID) -> Message:
    good = message(task, 2)
    return Message(task, good.tag, {**good.body, "padding": "x" * 5_000_000})


@pytest.fixture
async def stage(database: str, outage: Outage) -> AsyncIterator[Stage]:
    async with (
        pgmq.connect(database, role=pgmq.PUBLISHER) as publisher,
        pgmq.connect(database, role=pgmq.CONSUMER) as consumer,
    ):
        yield Stage(publisher, consumer, poison, outage)


@pytest.mark.both_versions
class TestPgmq(BusContract):
    """Everything of the contract, on PostgreSQL 15 and 18."""
