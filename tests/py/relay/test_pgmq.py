"""The embedded bus keeps the contract of `relay.bus`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from relay import pgmq
from relay.bus import Fate, Message
from tests.py.conftest import Connect
from tests.py.relay.conftest import Outage
from tests.py.relay.contract import GROUP, BusContract, Stage, message, nothing_comes, take


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


async def test_without_a_groups_queue_nothing_counts_as_sent(
    stage: Stage, connect: Connect
) -> None:
    # O28
    admin = connect(autocommit=True)
    admin.execute("select pgmq.drop_queue('aivedio_billing')")
    batch = [message(UUID(int=1), 1, "provider_succeeded"), message(UUID(int=2), 1, "queued")]
    receipts = await stage.publisher.publish(batch)
    assert [receipt.fate for receipt in receipts] == [Fate.FAILED] * 2
    assert await stage.publisher.publish([message(UUID(int=2), 2, "processing_media")])
    assert admin.execute("select count(*) from pgmq.q_aivedio_media").fetchone() == (0,)

    admin.execute("select aivedio.ensure_bus()")
    receipts = await stage.publisher.publish(batch)
    assert [receipt.fate for receipt in receipts] == [Fate.SENT] * 2
    assert admin.execute("select count(*) from pgmq.q_aivedio_billing").fetchone() == (2,)


async def test_a_refusal_names_no_values(stage: Stage) -> None:
    (receipt,) = await stage.publisher.publish([poison(UUID(int=1))])
    assert receipt.fate is Fate.POISON
    assert receipt.error == "Rejected VC613: message is too large for the bus"


async def test_a_reader_whose_listening_session_dies_is_only_late(
    stage: Stage, connect: Connect
) -> None:
    # O10
    admin = connect(autocommit=True)
    async with stage.consumer.subscribe(GROUP) as subscription:
        assert await nothing_comes(subscription, 0.2)
        for version in (1, 2, 3):
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and usename is not null"
                " and pid <> pg_backend_pid() and query like '%bell%'"
            )
            await stage.publisher.publish([message(UUID(int=1), version)])
            (delivery,) = await take(subscription, 1, patient=True)
            assert delivery.message.body["aggregate_version"] == version
