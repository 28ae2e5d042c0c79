"""Token buckets, on a clock of the test's own."""

from __future__ import annotations

from hypothesis import given, strategies as st

from edge.buckets import Buckets, Rate
from edge.intake.flood import Flood


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_the_rate() -> None:
    clock = Clock()
    buckets = Buckets(Rate(2.0, 3.0), clock=clock)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    clock.now += 0.5
    assert buckets.take("a") == 0
    assert buckets.take("a") == 0.5
    assert buckets.take("b") == 0


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(0, 2)), max_size=60))
def test_nobody_gets_more_than_the_burst_and_the_rate(steps: list[tuple[float, int]]) -> None:
    clock = Clock()
    buckets = Buckets(Rate(5.0, 4.0), clock=clock)
    began, taken = clock.now, 0
    for pause, takes in steps:
        clock.now += pause
        taken += sum(buckets.take("a") == 0 for _ in range(takes))
        assert taken <= 4 + 5 * (clock.now - began) + 1e-6


def test_many_senders_are_remembered_within_bounds() -> None:
    clock = Clock()
    buckets = Buckets(Rate(1.0, 1.0), remembered=100, clock=clock)
    for n in range(1000):
        buckets.take(str(n))
    assert len(buckets._buckets) == 100
    assert buckets.take("999") > 0
    assert buckets.take("0") == 0


def test_refused_signatures_close_the_door_for_their_source_only() -> None:
    clock = Clock()
    flood = Flood(refused=Rate(1.0, 2.0), clock=clock)
    for _ in range(2):
        assert flood.check("a", "p") == 0
        flood.refused("a")
    assert flood.check("a", "p") == 1.0
    assert flood.check("b", "p") == 0
    clock.now += 1.0
    assert flood.check("a", "p") == 0
