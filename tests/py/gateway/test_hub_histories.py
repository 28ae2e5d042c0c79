"""
Any history of publish, drop, repeat, reorder, forge, disconnect, reconnect with a cursor, stall,
prune, overflow, restore and failed reads ends with every browser equal to the database.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edge.gateway.audience import Batch
from edge.gateway.frames import Event
from edge.gateway.hub import Hub, Page, Read
from tests.py.gateway.model import PROJECT, SMALL, Connection, Store, event, held

TASKS = 3
some = st.integers(0, 9)


class Browser:
    """The page's loop: snapshot, cursor, and the proof by prev that nothing is missing."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.connection: Follow | None = None
        self.cursor = 0
        self.snapshot()

    def snapshot(self) -> None:
        self.tasks = dict(self.store.tasks)
        self.covered = self.store.head
        self.dirty = False

    def apply(self, prev: int, sent: Event) -> None:
        self.cursor = sent.event_id
        if prev < self.covered < sent.event_id:
            self.dirty = True  # the snapshot is not of this chain, or its id was left out
        if not self.dirty and sent.event_id > self.covered:
            self.tasks[sent.task] = max(self.tasks.get(sent.task, 0), sent.event_id)


class Follow(Connection):
    """A browser's connection."""

    def __init__(self, browser: Browser, asked: int | None) -> None:
        super().__init__(browser.store)
        self.browser = browser
        # Whether the chain held what was asked when it was asked.
        self.known = asked is None or asked == 0 or asked in browser.store.history

    def ready(self, cursor: int) -> None:
        super().ready(cursor)
        self.browser.cursor = cursor

    def reset(self, reason: str, cursor: int) -> None:
        super().reset(reason, cursor)
        self.browser.cursor = cursor
        self.browser.dirty = True

    def write(self, batch: Batch) -> None:
        super().write(batch)
        for prev, sent in batch.links:
            self.browser.apply(prev, sent)

    def close(self, reason: str) -> None:
        super().close(reason)
        self.browser.connection = None


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.hub: Hub | None = None
        self.network: list[Event] = []
        self.asked: list[tuple[Read, Page | None]] = []
        self.browsers: list[Browser] = []
        self.disturbed = False

    # The database and the way from it

    @rule(
        task=st.integers(0, TASKS - 1), progress=st.booleans(), copies=st.sampled_from([1, 1, 0, 2])
    )
    def commit(self, task: int, progress: bool, copies: int) -> None:
        made = self.store.commit(task, progress=progress, skip=self.store.drawn % 2)
        self.network += [made] * copies

    @precondition(lambda self: self.network)
    @rule(at=some, keep=st.booleans())
    def deliver(self, at: int, keep: bool) -> None:
        at %= len(self.network)
        sent = self.network[at] if keep else self.network.pop(at)
        if self.hub:
            self.hub.message(sent)

    @rule()
    def forge(self) -> None:
        if self.hub:
            base = self.store.drawn + 5000
            self.hub.message(event(base + 2, base))

    @rule()
    def forge_what_could_be(self) -> None:
        if self.hub and self.store.head:
            self.disturbed = True
            # Real ids are odd here, so no fact ever has this one.
            self.hub.message(event(self.store.head + 1, self.store.head))

    @rule(count=st.integers(1, 5))
    def prune(self, count: int) -> None:
        self.disturbed = True
        self.store.prune(count)

    @rule(count=st.integers(1, 3))
    def restore(self, count: int) -> None:
        if len(self.store.rows) > count:
            self.disturbed = True
            self.store.restore(count)

    # Reads

    @precondition(lambda self: any(page is None for _, page in self.asked))
    @rule(at=some)
    def take_snapshot_of_read(self, at: int) -> None:
        open_ones = [n for n, (_, page) in enumerate(self.asked) if page is None]
        n = open_ones[at % len(open_ones)]
        read = self.asked[n][0]
        self.asked[n] = (read, self.store.answer(read))

    @precondition(lambda self: any(page is not None for _, page in self.asked))
    @rule(at=some, fails=st.booleans())
    def end_read(self, at: int, fails: bool) -> None:
        done = [n for n, (_, page) in enumerate(self.asked) if page is not None]
        read, page = self.asked.pop(done[at % len(done)])
        assert page is not None
        if fails:
            read.hub.failed(read)
        else:
            read.hub.answered(read, page)

    @precondition(lambda self: self.hub)
    @rule()
    def retry(self) -> None:
        assert self.hub
        self.hub.retry()

    @precondition(lambda self: self.hub)
    @rule()
    def mistake(self) -> None:
        """A defect of ours: the hub forgets its chain, and asks anew when it is told to."""
        assert self.hub
        self.disturbed = True
        self.hub.collapse("mistake")

    @precondition(lambda self: self.hub)
    @rule(told=st.booleans())
    def look(self, told: bool) -> None:
        assert self.hub
        self.hub.look(self.store.head, self.hub.last if told else None)

    # Writing

    @precondition(lambda self: self.hub)
    @rule()
    def flush(self) -> None:
        assert self.hub
        self.hub.flush()

    @precondition(lambda self: self.hub)
    @rule(most=st.integers(1, 2))
    def step(self, most: int) -> None:
        assert self.hub
        self.hub.step(most)

    # Browsers

    @rule(
        kind=st.sampled_from(["own", "own", "own", "new", "none", "zero", "some", "future"]),
        number=st.integers(0, 60),
        at=some,
    )
    def connect(self, kind: str, number: int, at: int) -> None:
        idle = [browser for browser in self.browsers if browser.connection is None]
        if kind == "new" or not idle:
            browser = Browser(self.store)
            self.browsers.append(browser)
        else:
            browser = idle[at % len(idle)]
            if browser.dirty:
                browser.snapshot()
                browser.cursor = browser.covered
        asked: int | None = max(browser.cursor, browser.covered)
        if kind in ("none", "zero", "some", "future"):
            # A cursor that is not the browser's own proves nothing about its state.
            future = self.store.drawn + 1000 + number
            asked = {"none": None, "zero": 0, "some": number, "future": future}[kind]
            browser.dirty = True
        browser.connection = Follow(browser, asked)
        if self.hub is None:
            self.hub = Hub(PROJECT, self._ask, lambda hub: None, SMALL)
        self.hub.join(browser.connection, asked)

    def _ask(self, read: Read) -> None:
        self.asked.append((read, None))

    @precondition(lambda self: self._connected())
    @rule(at=some)
    def disconnect(self, at: int) -> None:
        assert self.hub
        browser = self._connected()[at % len(self._connected())]
        assert browser.connection
        self.hub.leave(browser.connection)
        browser.connection.closed = "left"
        browser.connection = None

    @precondition(lambda self: self._connected())
    @rule(at=some)
    def subscribe(self, at: int) -> None:
        """The same connection starts anew, after a snapshot of its own."""
        assert self.hub
        browser = self._connected()[at % len(self._connected())]
        connection = browser.connection
        assert connection
        self.hub.leave(connection)
        browser.snapshot()
        browser.cursor = browser.covered
        connection.position = None
        connection.known = True
        self.hub.join(connection, browser.cursor)

    @precondition(lambda self: self._connected())
    @rule(at=some, at_next_write=st.booleans())
    def stall(self, at: int, at_next_write: bool) -> None:
        assert self.hub
        connection = self._connected()[at % len(self._connected())].connection
        assert connection
        if at_next_write:
            connection.block_at_write = True
        elif not connection.blocked:
            connection.blocked = True
            self.hub.stalled(connection)

    @precondition(lambda self: self._connected())
    @rule(at=some)
    def drain(self, at: int) -> None:
        connection = self._connected()[at % len(self._connected())].connection
        assert connection
        self._drain(connection)

    def _drain(self, connection: Follow) -> None:
        assert self.hub
        connection.block_at_write = False
        if connection.blocked:
            connection.blocked = False
            self.hub.writable(connection)

    @rule(at=some)
    def snapshot(self, at: int) -> None:
        dirty = [
            browser
            for browser in self._connected()
            if browser.dirty and browser.connection and browser.connection.position is not None
        ]
        if dirty:
            dirty[at % len(dirty)].snapshot()

    @precondition(lambda self: self.hub and not self._connected())
    @rule()
    def drop_hub(self) -> None:
        self.hub = None

    def _connected(self) -> list[Browser]:
        return [browser for browser in self.browsers if browser.connection is not None]

    # What holds

    @invariant()
    def bounded(self) -> None:
        if self.hub is None:
            return
        assert len(self.hub._pending) <= SMALL.pending
        assert held(self.hub) <= SMALL.ring + SMALL.deep
        current = [
            read.kind == "back"
            for read, _ in self.asked
            if read.hub is self.hub and read.generation == self.hub._generation
        ]
        assert current.count(True) <= 1 and current.count(False) <= 1
        assert self.hub.followers == len(self._connected())

    @invariant()
    def resets_have_a_cause(self) -> None:
        for browser in self._connected():
            connection = browser.connection
            assert connection
            if connection.known and not self.disturbed:
                assert connection.resets in ([], ["too_old"])

    def teardown(self) -> None:
        if self.hub is None:
            return
        for _ in range(200):
            for browser in self._connected():
                assert browser.connection
                self._drain(browser.connection)
            self.hub.look(self.store.head, self.hub.last)
            self.hub.retry()
            reads, self.asked = self.asked, []
            for read, page in reads:
                read.hub.answered(read, page or self.store.answer(read))
            while self.hub.unsent:
                self.hub.flush()
                self.hub.step()
            if not self.asked and self.hub.last == self.store.head:
                break
        else:
            raise AssertionError("the hub never comes to rest")
        for browser in self._connected():
            assert browser.connection
            assert browser.connection.position == self.store.head
            if browser.dirty or browser.cursor < browser.covered:
                browser.snapshot()
            assert browser.tasks == self.store.tasks


Histories.TestCase.settings = settings(
    max_examples=300, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestHistories = Histories.TestCase
