"""Token buckets, on a clock of the test's own."""

from __future__ import annotations

from hypothesis import given, strategies as st

from edge.buckets import Buckets, Rate
from edge.intake.flood import KNOWN_AT_MOST, Flood


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
        assert flood.check("a") == 0
        flood.refused("a")
    assert flood.check("a") == flood.shut_out("a") == 1.0
    assert flood.check("b") == 0
    clock.now += 1.0
    assert flood.check("a") == 0


def test_what_is_forged_uses_up_nothing_that_real_callbacks_need() -> None:
    clock = Clock()
    flood = Flood(by_provider=Rate(1.0, 2.0), refused=Rate(1.0, 5.0), clock=clock)
    for n in range(100):
        flood.check(f"forger {n}")
        flood.refused(f"forger {n}")
    assert flood.check("good") == 0
    assert [flood.admit("good", "p", verified=True) for _ in range(3)] == [0, 0, 1.0]
    assert flood.admit("good", "another", verified=True) == 0


def test_a_good_sender_is_not_shut_out_for_what_others_send_from_its_address() -> None:
    clock = Clock()
    flood = Flood(refused=Rate(0.001, 1.0), known_for=60.0, clock=clock)
    assert flood.admit("shared", "p", verified=True) == 0
    for _ in range(10):
        flood.refused("shared")
    assert flood.check("shared") == 0
    clock.now += 61
    assert flood.check("shared") > 0


def test_an_unsigned_callback_makes_nobody_known() -> None:
    flood = Flood(refused=Rate(0.001, 1.0), clock=Clock())
    assert flood.admit("a", "p", verified=False) == 0
    flood.refused("a")
    assert flood.shut_out("a") > 0


def test_good_senders_are_remembered_within_bounds() -> None:
    flood = Flood(clock=Clock())
    for n in range(KNOWN_AT_MOST + 50):
        flood.admit(str(n), "p", verified=True)
    assert len(flood._known) == KNOWN_AT_MOST


def test_challenges_are_counted_apart() -> None:
    clock = Clock()
    flood = Flood(challenges=Rate(1.0, 2.0), clock=clock)
    assert [flood.challenge("a") for _ in range(3)] == [0, 0, 1.0]
    assert flood.check("a") == 0
