"""
The browser's ledger by itself: whenever it says `complete`, it holds what the database held.

Hypothesis writes histories of a database and of a connection that repeats, loses and breaks off;
snapshots arrive late, or answer a question that has become void.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.py.browser.chromium import Browser
from tests.py.browser.fake_gateway import STATIC

SOURCE = STATIC / "aivedio" / "ledger.js"
DRIVE = """
const ledger = new window.ledger.Ledger();
const answers = [];
const told = [];
for (const [what, ...rest] of given[0]) {
  if (what === 'ask') answers.push({ epoch: ledger.epoch, snapshot: rest[0] });
  if (what === 'answer' && answers.length > 0) {
    const which = rest[0] < 0 ? answers.length - 1 : rest[0] % answers.length;
    const { epoch, snapshot } = answers.splice(which, 1)[0];
    if (epoch === ledger.epoch) ledger.snapshot(snapshot, rest[1]);
  }
  if (what === 'event') ledger.event(rest[0], rest[1]);
  if (what === 'reset') ledger.reset(rest[0]);
  if (what === 'first') ledger.snapshot(rest[0], false);
  told.push({
    complete: ledger.complete,
    cursor: ledger.cursor,
    versions: Object.fromEntries([...ledger.tasks].map(([id, task]) => [id, task.task_version])),
    counters: { ...ledger.counters },
  });
}
return told;
"""


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Browser:
    chromium.driver.get("about:blank")
    chromium.run_now(
        "const blob = new Blob([given[0]], { type: 'text/javascript' });"
        "window.ledger = await import(URL.createObjectURL(blob));",
        SOURCE.read_text(),
    )
    return chromium


@dataclass
class World:
    """A database with its history, a connection to it, and the steps that the page takes."""

    head: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    links: dict[int, tuple[int, str, int]] = field(default_factory=dict)
    truth: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})
    sent: int = 0
    steps: list[list[Any]] = field(default_factory=list)
    # What was true at each cursor when the step was taken; a restore rewrites the history.
    truths: list[dict[int, dict[str, int]]] = field(default_factory=list)

    def take(self, *step: Any) -> None:
        self.steps.append(list(step))
        self.truths.append(dict(self.truth))

    def commit(self, task: str, gap: int) -> None:
        prev, self.head = self.head, self.head + gap
        version = self.versions.get(task, 0) + 1
        self.versions[task] = version
        self.links[self.head] = (prev, task, version)
        self.truth[self.head] = dict(self.versions)

    def snapshot(self, behind: int = 0, torn: int = 0) -> dict[str, Any]:
        """
        Read the tasks as they were some events ago.

        Pages are read one after the other, so of a torn snapshot some tasks are newer than its
        head; a bit of `torn` says which.
        """
        history = sorted(self.truth)
        head = history[max(0, len(history) - 1 - behind)]
        tasks = [
            {"id": name, "task_version": self.versions[name] if torn >> place & 1 else version}
            for place, (name, version) in enumerate(self.truth[head].items())
        ]
        return {"tasks": tasks, "head": head}

    def frame(self, event: int, prev: int) -> None:
        _, task, version = self.links[event]
        self.take("event", event, {"task_id": task, "task_version": version, "prev": prev})

    def send(self, lose: bool, twice: bool) -> None:
        following = [event for event in sorted(self.links) if event > self.sent]
        if not following:
            return
        event = following[0]
        if not lose:
            self.frame(event, self.sent)
            if twice:
                self.frame(event, self.sent)
        self.sent = event

    def restore(self, back: int) -> None:
        """Go back to an earlier state: ids are used again, and the gateway says `reset`."""
        kept = sorted(self.truth)[: max(1, len(self.truth) - back)]
        self.head = kept[-1]
        self.truth = {event: self.truth[event] for event in kept}
        self.versions = dict(self.truth[self.head])
        self.links = {event: link for event, link in self.links.items() if event in self.truth}
        self.sent = self.head
        self.take("reset", self.head)


tasks = st.sampled_from(["a", "b", "c"])
moves = st.one_of(
    st.tuples(st.just("commit"), tasks, st.integers(1, 4)),
    st.tuples(st.just("send"), st.booleans(), st.booleans()),
    st.tuples(st.just("send"), st.just(False), st.just(False)),
    st.tuples(st.just("ask"), st.just(0), st.just(0)),
    st.tuples(st.just("ask"), st.integers(0, 3), st.integers(0, 7)),
    st.tuples(st.just("answer"), st.integers(0, 3)),
    st.tuples(st.just("reset")),
    st.tuples(st.just("restore"), st.integers(1, 4)),
)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=st.lists(tasks, max_size=4), history=st.lists(moves, min_size=12, max_size=60))
def test_complete_is_never_a_lie(
    page: Browser, before: list[str], history: list[tuple[Any, ...]]
) -> None:
    world = World()
    for task in before:
        world.commit(task, 2)
    world.take("first", world.snapshot())
    world.sent = world.head
    for what, *rest in history:
        if what == "commit":
            world.commit(*rest)
        elif what == "send":
            world.send(*rest)
        elif what == "ask":
            world.take("ask", world.snapshot(*rest))
        elif what == "answer":
            world.take("answer", rest[0], True)
        elif what == "reset":
            world.sent = world.head
            world.take("reset", world.head)
        else:
            world.restore(*rest)
    # The end of every story: the rest of the events, and a snapshot that nothing disturbs.
    world.take("reset", world.head)
    world.take("ask", world.snapshot())
    world.take("answer", -1, True)
    told = page.run_now(DRIVE, world.steps)
    assert told[-1]["complete"] and told[-1]["versions"] == world.versions
    before_it: dict[str, int] = {}
    for step, truth, said in zip(world.steps, world.truths, told, strict=True):
        if said["complete"]:
            # A page that was read late may hold more than the cursor says, never less.
            least, most = truth[said["cursor"]], truth[max(truth)]
            assert set(least) <= set(said["versions"]) <= set(most), (step, said)
            for task, version in said["versions"].items():
                assert least.get(task, 0) <= version <= most[task], (step, said)
        if step[0] == "event":
            assert all(said["versions"][task] >= version for task, version in before_it.items())
        before_it = said["versions"]


def test_a_lost_event_is_noticed_by_the_next_one(page: Browser) -> None:
    snapshot = {"tasks": [{"id": "a", "task_version": 1}], "head": 10}
    steps: list[list[Any]] = [
        ["first", snapshot],
        ["event", 12, {"task_id": "a", "task_version": 3, "prev": 11}],
        ["ask", {"tasks": [{"id": "a", "task_version": 3}], "head": 12}],
        ["answer", 0, True],
    ]
    told = page.run_now(DRIVE, steps)
    assert [said["complete"] for said in told] == [True, False, False, True]
    assert told[1]["versions"] == {"a": 1}
    assert told[3]["versions"] == {"a": 3}
    assert told[3]["counters"]["breaks"] == 1


def test_a_snapshot_off_the_chain_is_not_believed(page: Browser) -> None:
    steps: list[list[Any]] = [
        ["first", {"tasks": [], "head": 10}],
        ["ask", {"tasks": [{"id": "a", "task_version": 2}], "head": 15}],
        ["answer", 0, True],
        ["event", 14, {"task_id": "a", "task_version": 1, "prev": 10}],
        ["event", 16, {"task_id": "a", "task_version": 2, "prev": 14}],
    ]
    told = page.run_now(DRIVE, steps)
    assert [said["complete"] for said in told] == [True, True, False, False, False]
    assert told[4]["counters"]["breaks"] == 1


def test_events_held_back_are_judged_by_the_snapshot_too(page: Browser) -> None:
    steps: list[list[Any]] = [
        ["first", {"tasks": [], "head": 10}],
        ["reset", 10],
        ["event", 12, {"task_id": "a", "task_version": 1, "prev": 10}],
        ["event", 16, {"task_id": "a", "task_version": 2, "prev": 12}],
        ["ask", {"tasks": [{"id": "a", "task_version": 2}], "head": 15}],
        ["answer", 0, True],
        ["ask", {"tasks": [{"id": "a", "task_version": 2}], "head": 16}],
        ["answer", 0, True],
    ]
    told = page.run_now(DRIVE, steps)
    assert [said["complete"] for said in told] == [True] + [False] * 6 + [True]


def test_a_repeat_breaks_nothing(page: Browser) -> None:
    event = ["event", 12, {"task_id": "a", "task_version": 1, "prev": 10}]
    told = page.run_now(DRIVE, [["first", {"tasks": [], "head": 10}], event, event])
    assert told[-1]["complete"]
    assert (told[-1]["counters"]["repeats"], told[-1]["counters"]["breaks"]) == (1, 0)


def test_an_answer_from_before_a_restore_is_void(page: Browser) -> None:
    steps: list[list[Any]] = [
        ["first", {"tasks": [{"id": "a", "task_version": 5}], "head": 20}],
        ["ask", {"tasks": [{"id": "a", "task_version": 5}], "head": 20}],
        ["reset", 10],
        ["answer", 0, True],
        ["ask", {"tasks": [{"id": "a", "task_version": 2}], "head": 10}],
        ["answer", 0, True],
    ]
    told = page.run_now(DRIVE, steps)
    assert not told[3]["complete"]
    assert told[5]["complete"] and told[5]["versions"] == {"a": 2}
