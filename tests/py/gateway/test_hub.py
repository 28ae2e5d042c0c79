"""The hub's rules R1 to R10, one by one. `test_hub_histories` tries them together."""

from __future__ import annotations

import pytest

from edge.gateway.audience import Limits
from edge.gateway.hub import NOWHERE
from tests.py.gateway.model import SMALL, Connection, World, event


@pytest.fixture
def world() -> World:
    return World()


def opened(world: World, events: int = 0) -> Connection:
    """Return a connection that follows from the start of a stream with some events."""
    for _ in range(events):
        world.store.commit()
    connection = world.connect(0)
    world.settle()
    return connection


def test_r1_messages_reach_the_hub_before_its_first_read_is_answered(world: World) -> None:
    connection = world.connect(0)
    (read,) = world.reads
    page = world.store.answer(read)
    world.hub.message(world.store.commit())  # committed after the read's snapshot
    world.reads.clear()
    world.hub.answered(read, page)
    world.write()
    assert connection.seen == [1]


def test_r2_the_next_link_is_appended_and_a_repeat_is_dropped(world: World) -> None:
    connection = opened(world, 1)
    live = world.store.commit()
    world.hub.message(live)
    world.hub.message(live)
    world.write()
    assert connection.seen == [1, 2]
    assert world.reads == []


def test_r2_a_stranger_inside_the_span_of_the_ring_asks(world: World) -> None:
    opened(world)
    for _ in range(2):
        world.hub.message(world.store.commit(skip=1))
    world.hub.message(event(3, 2))
    assert [read.kind for read in world.reads] == ["head"]


def test_r3_a_message_past_a_hole_waits_for_the_read_that_fills_it(world: World) -> None:
    connection = opened(world)
    lost, live = world.store.commit(), world.store.commit()
    world.hub.message(live)
    world.write()
    assert connection.seen == []
    world.settle()
    assert connection.seen == [lost.event_id, live.event_id]


def test_r3_reordered_messages_are_put_in_order_without_waiting_for_the_read(world: World) -> None:
    connection = opened(world)
    first, second = world.store.commit(), world.store.commit()
    world.hub.message(second)
    world.hub.message(first)
    world.write()
    assert connection.seen == [1, 2]


def test_r3_what_waits_is_bounded_and_nothing_is_lost_by_it(world: World) -> None:
    connection = opened(world)
    events = [world.store.commit() for _ in range(12)]
    for live in events[1:]:
        world.hub.message(live)
        assert len(world.hub._pending) <= SMALL.pending
    world.settle()
    assert connection.seen == [live.event_id for live in events]


def test_r4_a_read_that_does_not_continue_the_chain_is_a_fork(world: World) -> None:
    connection = opened(world, 3)
    world.store.restore(1)
    live = world.store.commit()
    world.hub.message(live)
    world.settle()
    assert connection.resets == ["ahead"] or connection.resets == ["pruned"]
    assert connection.position == live.event_id


def test_r4_a_read_past_a_forged_event_is_a_fork(world: World) -> None:
    connection = opened(world, 1)
    fact = world.store.commit(skip=3)
    world.hub.look(fact.event_id)
    world.hub.message(event(3, 1))
    world.settle()
    assert connection.resets == ["gap"]
    assert connection.position == fact.event_id


def test_r5_one_read_is_in_flight_and_a_need_meanwhile_asks_once_more(world: World) -> None:
    connection = opened(world)
    world.hub.look(world.store.commit().event_id)
    page = world.store.answer(world.reads[0])
    for _ in range(3):
        world.hub.message(event(world.store.commit(skip=1).event_id, 99))
    assert len(world.reads) == 1
    world.hub.answered(world.reads.pop(), page)
    world.settle()
    assert connection.seen == [1, 3, 5, 7]


def test_r5_a_failed_read_is_asked_again(world: World) -> None:
    connection = opened(world)
    world.hub.look(world.store.commit().event_id)
    world.hub.failed(world.reads.pop())
    assert world.reads == []
    world.hub.retry()
    world.settle()
    assert connection.seen == [1]


def test_r6_a_cursor_ahead_of_the_hub_waits_for_a_read_that_started_later(world: World) -> None:
    """C11: another gateway was faster, or the cursor is from before a restore."""
    opened(world)
    faster = world.store.commit()
    world.hub.look(faster.event_id)
    page = world.store.answer(world.reads[0])
    ahead = world.connect(world.store.commit().event_id)
    invented = world.connect(4711)
    world.hub.answered(world.reads.pop(0), page)
    assert ahead.position is None and invented.position is None
    world.settle()
    assert ahead.resets == [] and invented.resets == ["ahead"]
    assert [one.position for one in (ahead, invented)] == [2, 2]


def test_r6_a_message_that_is_no_fact_is_dropped(world: World) -> None:
    connection = opened(world, 1)
    world.hub.message(event(99, 98))
    world.settle()
    assert world.hub._pending == {}
    assert connection.seen == [1]


def test_r7_a_cursor_that_the_ring_holds_costs_no_read(world: World) -> None:
    opened(world, 3)
    before = world.store.reads
    late = [world.connect(cursor) for cursor in (0, 1, 2, 3, None)]
    assert [one.seen for one in late] == [[1, 2, 3], [2, 3], [3], [], []]
    assert world.store.reads == before


def test_r7_a_cursor_inside_the_span_that_is_no_event_is_reset(world: World) -> None:
    """C14, A4: an id of another project, or one that was never issued."""
    opened(world)
    for _ in range(3):
        world.hub.message(world.store.commit(skip=2))
    world.write()
    stranger = world.connect(5)
    assert stranger.resets == ["unknown"]
    assert stranger.position == 9


def test_r7_one_backward_read_serves_all_who_are_older_than_the_ring(world: World) -> None:
    for _ in range(8):
        world.store.commit()
    world.connect(None)
    world.settle()
    before = world.store.reads
    old = [world.connect(cursor) for cursor in (3, 4, 4, 6)]
    world.settle()
    assert [one.seen for one in old] == [[4, 5, 6, 7, 8], [5, 6, 7, 8], [5, 6, 7, 8], [7, 8]]
    # The first of them asked alone, the second read was for those who came meanwhile.
    assert world.store.reads - before <= 2


def test_r7_a_cursor_older_than_what_is_stored_is_reset_once_and_followed(world: World) -> None:
    """C10: exactly one reset, then live."""
    for _ in range(6):
        world.store.commit()
    world.store.prune(3)
    pruned = world.connect(1)
    kept = world.connect(3)
    world.settle()
    assert pruned.resets == ["pruned"] and kept.resets == []
    assert kept.seen == [4, 5, 6]
    world.hub.message(world.store.commit())
    world.write()
    assert pruned.seen == [7] and kept.seen[-1] == 7


def test_r7_a_cursor_too_far_back_is_reset_instead_of_read(world: World) -> None:
    for _ in range(50):
        world.store.commit()
    far = world.connect(2)
    world.settle()
    assert far.resets == ["too_old"]
    assert far.position == 50


def test_r7_the_ring_keeps_what_a_backward_read_attaches_to(world: World) -> None:
    for _ in range(8):
        world.store.commit()
    world.connect(None)
    world.settle()
    before = world.store.reads
    old = world.connect(5)
    for _ in range(SMALL.ring + 2):
        world.hub.message(world.store.commit())
        world.write()
    world.settle()
    assert old.resets == [] and old.closed is None
    assert old.seen == [6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert world.store.reads == before + 1
    assert world.ring <= SMALL.ring


def test_r7_who_came_by_a_backward_read_is_not_overtaken_by_the_ring(world: World) -> None:
    for _ in range(8):
        world.store.commit()
    world.connect(None)
    world.settle()
    old = world.connect(1)
    old.block_at_write = True
    world.settle()
    assert old.seen == [2, 3]
    for _ in range(3):
        world.hub.message(world.store.commit())
        world.write()
        old.blocked = False
        world.hub.writable(old)
    old.block_at_write = old.blocked = False
    world.hub.writable(old)
    world.hub.message(world.store.commit())
    world.write()
    assert old.seen == list(range(2, 13)) and old.closed is None
    assert world.ring <= SMALL.ring


def test_r7_a_failed_backward_read_is_asked_again(world: World) -> None:
    for _ in range(8):
        world.store.commit()
    world.connect(None)
    world.settle()
    old = world.connect(5)
    world.hub.failed(world.reads.pop())
    for _ in range(2 * SMALL.ring):
        world.hub.message(world.store.commit())
        world.write()
    world.hub.retry()
    world.settle()
    assert old.seen[-1] == world.store.head or old.resets


def test_r8_a_batch_has_the_recipients_it_had_when_its_writing_started(world: World) -> None:
    first = opened(world)
    others = [world.connect(0) for _ in range(3)]
    world.hub.message(world.store.commit())
    world.hub.flush()
    world.hub.step(2)
    joined = world.connect(0)
    assert joined.seen == [1]
    world.hub.message(world.store.commit())
    world.hub.flush()  # the first batch is still being written
    world.write()
    for one in (first, joined, *others):
        assert one.seen == [1, 2]


def test_r8_a_cursor_ahead_of_what_was_written_waits_for_its_batch(world: World) -> None:
    opened(world)
    world.hub.message(world.store.commit())
    early = world.connect(1)
    assert early.position == 1
    world.write()
    assert early.seen == []
    world.hub.message(world.store.commit())
    world.write()
    assert early.seen == [2]


def test_r8_a_connection_that_stalls_while_a_batch_is_written_misses_nothing(world: World) -> None:
    opened(world)
    others = [world.connect(0) for _ in range(3)]
    world.hub.message(world.store.commit())
    world.hub.flush()
    world.hub.step(1)
    for one in others:
        one.blocked = True
        world.hub.stalled(one)
    world.write()
    for one in others:
        one.blocked = False
        world.hub.writable(one)
        assert one.seen == [1]


def test_r8_who_leaves_while_a_batch_is_written_gets_no_more_of_it(world: World) -> None:
    opened(world)
    others = [world.connect(0) for _ in range(3)]
    world.hub.message(world.store.commit())
    world.hub.flush()
    world.hub.step(1)
    for one in others:
        world.hub.leave(one)
        one.closed = "left"
    world.write()


def test_r9_a_fork_resets_everybody_and_closes_nobody(world: World) -> None:
    live = opened(world, 4)
    slow = world.connect(1)
    slow.blocked = True
    world.hub.stalled(slow)
    world.store.restore(2)
    world.hub.message(world.store.commit())
    world.settle()
    head = world.store.head
    for one in (live, slow):
        assert len(one.resets) == 1
        assert one.position == head and one.closed is None


def test_r9_who_waits_for_a_read_when_the_chain_forks_is_reset_too(world: World) -> None:
    opened(world)
    for _ in range(SMALL.ring + 2):
        world.hub.message(world.store.commit())
        world.write()
    behind = world.connect(0)
    ahead = world.connect(99)
    world.store.restore(2)
    head = next(read for read in world.reads if read.kind == "head")
    world.reads.remove(head)
    world.hub.answered(head, world.store.answer(head))
    world.settle()
    for one in (behind, ahead):
        assert one.resets == ["ahead"] and one.position == world.store.head


def test_r9_the_answer_of_a_read_of_the_old_chain_is_ignored(world: World) -> None:
    connection = opened(world, 8)
    old = world.connect(2)
    stale = [(read, world.store.answer(read)) for read in world.reads]
    world.store.restore(3)
    world.hub.message(world.store.commit())
    world.settle()
    for read, page in stale:
        world.hub.answered(read, page)
        world.hub.failed(read)
    world.settle()
    for one in (connection, old):
        assert one.position == world.store.head


def test_r10_progress_is_left_out_only_when_a_later_event_of_its_task_follows(world: World) -> None:
    opened(world)
    slow = world.connect(0)
    slow.blocked = True
    world.hub.stalled(slow)
    for task, progress in ((0, False), (0, True), (1, True), (0, True)):
        world.hub.message(world.store.commit(task, progress=progress))
    world.write()
    assert slow.seen == []
    slow.blocked = False
    world.hub.writable(slow)
    assert slow.seen == [1, 3, 4]


def test_r10_a_slow_connection_below_the_ring_is_closed_and_others_go_on(world: World) -> None:
    """G8: bounded, then disconnected; never a silent hole."""
    live = opened(world)
    slow = world.connect(0)
    slow.blocked = True
    world.hub.stalled(slow)
    for _ in range(SMALL.ring + 1):
        world.hub.message(world.store.commit())
        world.write()
    assert slow.closed == "overflow"
    assert live.seen == [1, 2, 3, 4, 5]
    assert world.hub.followers == 1


def test_r10_a_drained_connection_is_brought_on_in_pieces() -> None:
    world = World(Limits(ring=100, piece=3))
    opened(world)
    slow = world.connect(0)
    slow.blocked = True
    world.hub.stalled(slow)
    for _ in range(10):
        world.hub.message(world.store.commit())
    world.write()
    slow.block_at_write = True
    for _ in range(4):
        slow.blocked = False
        world.hub.writable(slow)
    assert slow.seen == list(range(1, 11))


def test_a_hub_with_a_stream_that_does_not_exist_yet_follows_its_first_event(world: World) -> None:
    """C13, C16: nothing is there, and after=0 returns the very first event."""
    first = world.connect(0)
    later = world.connect(None)
    world.settle()
    world.hub.message(world.store.commit())
    world.write()
    assert first.seen == later.seen == [1]


def test_a_hub_without_a_cursor_reads_only_the_head(world: World) -> None:
    for _ in range(50):
        world.store.commit()
    connection = world.connect(None)
    (read,) = world.reads
    assert read.cursor == NOWHERE
    world.settle()
    assert (connection.position, connection.seen) == (50, [])


def test_what_moved_is_fetched_when_messages_stay_away(world: World) -> None:
    """G16: the bus and Redis are dead, a look at PostgreSQL is enough."""
    connection = opened(world)
    world.store.commit()
    world.hub.look(world.store.head)
    world.settle()
    assert connection.seen == [1]
    world.hub.look(world.store.head)
    assert world.reads == []


def test_an_old_answer_about_what_moved_asks_for_nothing(world: World) -> None:
    opened(world, 2)
    world.hub.look(1)
    assert world.reads == []


def test_a_head_that_went_back_is_noticed_before_the_next_event(world: World) -> None:
    connection = opened(world, 3)
    then = world.hub.last
    world.store.restore(1)
    world.hub.look(world.store.head, then)
    world.settle()
    assert connection.resets and connection.position == 2


def test_a_burst_larger_than_anything_kept_closes_instead_of_skipping(world: World) -> None:
    live = opened(world)
    world.hub.message(world.store.commit())
    early = world.connect(1)
    for _ in range(SMALL.ring + SMALL.deep + 3):
        world.hub.message(world.store.commit())
    world.write()
    assert live.closed == early.closed == "overflow"
    again = world.connect(0)
    world.settle()
    assert again.resets == ["too_old"] or again.position == world.store.head


def test_leaving_twice_or_unasked_is_no_mistake(world: World) -> None:
    connection = opened(world, 1)
    world.hub.leave(connection)
    world.hub.leave(connection)
    world.hub.writable(connection)
    world.hub.stalled(connection)
    assert world.hub.followers == 0
