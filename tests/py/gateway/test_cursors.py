"""Where a reader goes on: cursors good and bad, over HTTP and against the real tables."""

from __future__ import annotations

import uuid

from tests.py.gateway.conftest import Gateway, Person


async def create(gateway: Gateway, person: Person, count: int) -> list[int]:
    return [(await gateway.create_task(person))["event_id"] for _ in range(count)]


async def test_a_reader_goes_on_where_it_left(gateway: Gateway, person: Person) -> None:
    (project,) = person.projects
    first, second = await create(gateway, person, 2)
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.until(second)
        assert reader.ids == [first, second]
    third, fourth = await create(gateway, person, 2)
    async with gateway.follow(project, person.bearer(), cursor=second) as reader:
        assert (await reader.next()).event == "ready"
        await reader.until(fourth)
        assert reader.ids == [third, fourth]


async def test_no_cursor_means_from_now(gateway: Gateway, person: Person) -> None:
    """C8: once `ready` is there, everything that follows is delivered."""
    (project,) = person.projects
    *_, last = await create(gateway, person, 3)
    async with gateway.follow(project, person.bearer()) as reader:
        ready = await reader.next()
        assert (ready.event, reader.cursor) == ("ready", last)
        (new,) = await create(gateway, person, 1)
        await reader.until(new)
        assert reader.ids == [new]


async def test_a_snapshots_cursor_continues_it(gateway: Gateway, person: Person) -> None:
    """C7: nothing lies between a snapshot and the stream that follows it."""
    (project,) = person.projects
    await create(gateway, person, 2)
    snapshot = await gateway.client.get(f"/projects/{project}/tasks", headers=person.bearer())
    cursor = snapshot.json()["last_event_id"]
    (new,) = await create(gateway, person, 1)
    async with gateway.follow(project, person.bearer(), query=f"?after={cursor}") as reader:
        await reader.until(new)
        assert reader.ids == [new]


async def test_the_header_wins_over_the_query(gateway: Gateway, person: Person) -> None:
    """B10: a browser that reconnects sends its newer position in the header."""
    (project,) = person.projects
    first, second = await create(gateway, person, 2)
    async with gateway.follow(project, person.bearer(), cursor=first, query="?after=0") as reader:
        await reader.next()
        await reader.until(second)
        assert reader.ids == [second]
    refused = await gateway.client.get(
        f"/projects/{project}/events?after=0",
        headers={**person.bearer(), "last-event-id": "x"},
    )
    assert refused.status_code == 400


async def test_a_malformed_cursor_is_refused(gateway: Gateway, person: Person) -> None:
    wrong = [
        "x",
        "-1",
        "1.5",
        "1e3",
        "+1",
        " 1 2",
        "0x10",
        "9007199254740992",
        "9" * 30,
        "١",
        "1\0",
    ]
    for cursor in wrong:
        answer = await gateway.client.get(
            f"/projects/{person.projects[0]}/events",
            params={"after": cursor},
            headers=person.bearer(),
        )
        assert answer.status_code == 400, cursor
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "bad_cursor"


async def test_a_pruned_cursor_is_reset_once_and_then_live(
    gateway: Gateway, person: Person
) -> None:
    """C10, C14: one reset that names the reason and the head, then the stream goes on."""
    (project,) = person.projects
    events = await create(gateway, person, 4)
    await gateway.sql("delete from aivedio.task_events where event_id <= %s", events[2])
    async with gateway.follow(project, person.bearer(), cursor=events[0]) as reader:
        reset = await reader.next()
        assert reset.event == "reset"
        assert reset.json() == {"reason": "pruned", "cursor": events[3]}
        (new,) = await create(gateway, person, 1)
        await reader.until(new)
        assert reader.ids == [new]
    # The last id before what is left still continues.
    async with gateway.follow(project, person.bearer(), cursor=events[2]) as reader:
        await reader.next()
        await reader.until(new)
        assert reader.ids == [events[3], new]


async def test_a_cursor_ahead_is_reset_at_once(gateway: Gateway, person: Person) -> None:
    """C11: not silence until the head catches up."""
    (project,) = person.projects
    (head,) = await create(gateway, person, 1)
    async with gateway.follow(project, person.bearer(), cursor=head + 1000) as reader:
        assert (await reader.next()).json() == {"reason": "ahead", "cursor": head}
    async with gateway.follow(project, person.bearer(), cursor=2**53 - 1) as reader:
        assert (await reader.next()).json() == {"reason": "ahead", "cursor": head}


async def test_another_projects_cursor_is_reset(gateway: Gateway, person: Person) -> None:
    """A4, C14: an id between two of this project's own, and one that was never issued."""
    (project,) = person.projects
    other = Person(projects=(uuid.uuid4(),))
    (first,) = await create(gateway, person, 1)
    (foreign,) = await create(gateway, other, 1)
    (last,) = await create(gateway, person, 1)
    assert first < foreign < last
    async with gateway.follow(project, person.bearer(), cursor=foreign) as reader:
        reset = await reader.next()
        assert reset.event == "reset" and reset.json()["cursor"] == last
    # Again, from a hub that holds the whole span.
    async with (
        gateway.follow(project, person.bearer(), cursor=0) as keeper,
        gateway.follow(project, person.bearer(), cursor=foreign) as reader,
    ):
        await keeper.until(last)
        assert (await reader.next()).json() == {"reason": "unknown", "cursor": last}


async def test_a_project_without_a_stream_is_followed_from_its_first_event(
    gateway: Gateway, person: Person
) -> None:
    """C13, C16: after=0 returns the very first event."""
    (project,) = person.projects
    async with (
        gateway.follow(project, person.bearer(), query="?after=0") as from_start,
        gateway.follow(project, person.bearer()) as from_now,
    ):
        assert (await from_start.next()).json() == {"cursor": 0}
        assert (await from_now.next()).json() == {"cursor": 0}
        (first,) = await create(gateway, person, 1)
        await from_start.until(first)
        await from_now.until(first)
        assert from_start.ids == from_now.ids == [first]


async def test_a_restored_database_resets_its_readers(gateway: Gateway, person: Person) -> None:
    """What a restore took away is not shown any longer, and new events follow."""
    (project,) = person.projects
    first, second, lost = await create(gateway, person, 3)
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.until(lost)
        await gateway.sql("delete from aivedio.task_events where event_id = %s", lost)
        await gateway.sql(
            "update aivedio.project_streams set last_event_id = %s where project_id = %s",
            second,
            project,
        )
        await gateway.sql("select setval('aivedio.task_event_ids', %s)", lost + 1000)
        (new,) = await create(gateway, person, 1)
        while (await reader.next()).event != "reset":
            pass
        # At the new head, or already at the one that the restore left.
        await reader.until(new)
        (newer,) = await create(gateway, person, 1)
        await reader.until(newer)


async def test_many_events_are_replayed_completely(gateway: Gateway, person: Person) -> None:
    """More than one page, more than one ring."""
    (project,) = person.projects
    events = await create(gateway, person, 1)
    rows = await gateway.sql(
        """select created.event_id
           from generate_series(1, 1600) as number,
             aivedio.create_task(%s, %s, %s, 'replicate', 'model ' || number, '{}') as created""",
        person.tenant,
        project,
        person.user,
    )
    events += [row[0] for row in rows]
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        await reader.until(events[-1], within=15.0)
        assert reader.ids == events
