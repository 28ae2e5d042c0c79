"""
P14: more jobs in flight than the quotas allow to ask about: no pulse, nobody starves, no quota
is exceeded.

The short form has a twentieth of the quotas of a large installation, over two minutes. The long
one has 7,200 jobs and 200 polls a second.
"""

from __future__ import annotations

import logging
from typing import Any

import psycopg
import pytest

from tests.py.conftest import Connect
from tests.py.schedule.simulation import Quotas, Simulation

logger = logging.getLogger(__name__)

SMALL = Quotas(platform=10, tenant=8, alpha=7, beta=4, model=4)
LARGE = Quotas(platform=200, tenant=150, alpha=150, beta=80, model=80)


def hold_quotas(simulation: Simulation) -> None:
    quotas = simulation.quotas
    for window in (1, 10, 60):
        assert simulation.busiest("true", window) <= quotas.platform * window
        assert simulation.busiest("tenant_id", window) <= quotas.tenant * window
        assert simulation.busiest("provider, model", window) <= quotas.model * window
        for provider in ("alpha", "beta"):
            most = simulation.busiest("true", window, f"where provider = '{provider}'")
            assert most <= getattr(quotas, provider) * window


def judge(simulation: Simulation) -> None:
    logger.info("%s", simulation.summary())
    hold_quotas(simulation)
    assert simulation.rate() >= 0.7 * simulation.quotas.platform
    assert simulation.peak_over_mean() <= 1.5

    # Once round all jobs at nine tenths of the quota, which is what the buckets hand out.
    round_s = simulation.jobs / (0.9 * simulation.quotas.platform)
    assert simulation.longest_wait() <= 3 * round_s
    assert simulation.mean_wait("first") < simulation.mean_wait("not first") / 2


def test_more_jobs_than_the_quotas_allow(connect: Connect) -> None:
    simulation = Simulation(connect(autocommit=True), 240, SMALL)
    simulation.prepare()
    simulation.run(120)
    judge(simulation)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_seven_thousand_jobs_and_two_hundred_polls_a_second(connect: Connect) -> None:
    simulation = Simulation(connect(autocommit=True), 7200, LARGE)
    simulation.prepare()
    simulation.run(3600)
    judge(simulation)


def test_what_is_judged_can_fail(connect: Connect) -> None:
    """A scheduler without buckets is found out."""
    session: psycopg.Connection[Any] = connect(autocommit=True)
    simulation = Simulation(session, 100, SMALL)
    simulation.prepare()
    session.execute(
        "create or replace function aivedio._refilled("
        " p_quota aivedio.poll_quotas, p_burst double precision, p_now timestamptz)"
        " returns double precision language sql immutable as 'select 1000'"
    )
    simulation.run(3)
    with pytest.raises(AssertionError):
        hold_quotas(simulation)
