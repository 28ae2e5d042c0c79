"""
The tests of the hub are worth something: break any of its rules, and they notice.

Each mutation is a change of the hub's source. It is caught when a test of `test_hub` fails, or
when a history of `test_hub_histories` does.
"""

from __future__ import annotations

import inspect
import sys
import types
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from edge.gateway import audience, hub
from tests.py.gateway import model, test_hub, test_hub_histories

# rule and what goes wrong: (what the source says, what the mutant says)
MUTATIONS = {
    "R2 any larger id is appended": (
        "if event.prev == ring.last:\n                ring.append(event)",
        "if True:\n                ring.append(event._replace(prev=ring.last))",
    ),
    "R2 a repeat is appended": (
        "if event.event_id <= ring.last:\n                if",
        "if False:\n                if",
    ),
    "R3 nothing is asked for a hole": (
        "        self._need()\n\n    def look",
        "\n    def look",
    ),
    "R3 what waits has no bound": (
        "if len(self._pending) >= self._limits.pending:",
        "if False:",
    ),
    "R4 a read need not continue the chain": (
        "if not page.complete or not _extend(",
        "if not _extend(",
    ),
    "R4 the links of a read are not checked": (
        "                return False\n            ring.append(event)",
        "                pass\n            ring.append(event._replace(prev=ring.last))",
    ),
    "R5 a need during a read is forgotten": (
        "self._audience is None:\n            self._again = True\n",
        "self._audience is None:\n",
    ),
    "R5 two reads at once": (
        "if self._flight is not None or self._audience is None:",
        "if self._audience is None:",
    ),
    "R6 any read denies a cursor": (
        "if number is not None and number > cursor.number:",
        "if number is not None:",
    ),
    "R6 a cursor ahead is denied at once": (
        "if number is not None and number > cursor.number:",
        "if True:",
    ),
    "R6 an unexplained message is kept": (
        "            self._pending.clear()\n            self._settle",
        "            self._settle",
    ),
    "R7 any id in the span is a cursor": (
        "if ring.holds(at):",
        "if ring.floor <= at <= ring.last:",
    ),
    "R7 the ring is not kept during a backward read": (
        "audience.shrink(pinned=self._back is not None)",
        "audience.shrink(pinned=False)",
    ),
    "R7 the ring is not kept for who came by a backward read": (
        "for one in self._deep if one in self._lag]",
        "for one in self._deep if False]",
    ),
    "R7 what is not read back is called pruned": (
        "self._bottom = not (older and page.more)",
        "self._bottom = True",
    ),
    "R7 a failed backward read is never asked again": (
        "        if self._behind:\n            self._look_back(self._audience)\n",
        "",
    ),
    "R8 attached at the last event, not at the written one": (
        "        if cursor > self._sent:\n            self._early[follower]",
        "        if False:\n            self._early[follower]",
    ),
    "R8 who attaches is a recipient of the batch being written": (
        "            self._live.add(follower)\n",
        "            self._live.add(follower); (self._todo or set()).add(follower)\n",
    ),
    "R8 who leaves stays a recipient": (
        "        self._todo.discard(follower)\n        self._deep",
        "        self._deep",
    ),
    "R8 who stalls stays a recipient": (
        "            self._todo.discard(follower)\n\n    def writable",
        "\n    def writable",
    ),
    "R8 who stalls is taken to have the batch": (
        "self._before if follower in self._todo else self._sent",
        "self._sent",
    ),
    "R8 the next batch starts while one is written": (
        "if self._todo or self.ring.last == self._sent:",
        "if self.ring.last == self._sent:",
    ),
    "R9 answers of the old chain count": (
        '            return\n        if read.kind == "back":\n            self._answered_back',
        '            pass\n        if read.kind == "back":\n            self._answered_back',
    ),
    "R9 a fork forgets who waits": (
        "for group in (told, self._ahead, self._behind):",
        "for group in (told,):",
    ),
    "R10 progress is left out though nothing supersedes it": (
        "if event.progress_only and newest[event.task] != event.event_id:",
        "if event.progress_only:",
    ),
    "R10 any superseded event is left out": (
        "if event.progress_only and newest[event.task] != event.event_id:",
        "if newest[event.task] != event.event_id:",
    ),
    "R10 what was left out is still named as prev": (
        "            links.append((prev, event))",
        "            links.append((event.prev, event))",
    ),
    "R10 below the ring: skipped ahead instead of closed": (
        "            self._overflow(follower)\n            return\n",
        "            cursor = self.ring.floor\n",
    ),
    "R10 a blocked connection is written to": (
        "while cursor < self._sent and not follower.blocked:",
        "while cursor < self._sent:",
    ),
}


@pytest.fixture(params=MUTATIONS)
def mutant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break one rule, wherever it is kept."""
    old, new = MUTATIONS[request.param]
    for module in (hub, audience):
        source = Path(str(module.__file__)).read_text()
        if source.count(old) == 1:
            broken = compiled(module.__name__, source.replace(old, new), monkeypatch)
            break
    else:
        raise AssertionError("the mutation no longer fits the source")
    if hasattr(broken, "Hub"):
        monkeypatch.setattr(model, "Hub", broken.Hub)
        monkeypatch.setattr(test_hub_histories, "Hub", broken.Hub)
    else:
        monkeypatch.setattr(hub, "Audience", broken.Audience)


def compiled(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType(f"mutated_{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    return module


@pytest.mark.usefixtures("mutant")
def test_every_broken_rule_is_noticed() -> None:
    assert caught_by_a_rule() or caught_by_a_history(), "nothing noticed"


def caught_by_a_rule() -> bool:
    for name, test in vars(test_hub).items():
        if name.startswith("test_") and callable(test):
            try:
                test(*[model.World() for _ in inspect.signature(test).parameters])
            except Exception:
                return True
    return False


def caught_by_a_history() -> bool:
    try:
        run_state_machine_as_test(
            test_hub_histories.Histories,
            settings=settings(
                max_examples=500,
                stateful_step_count=60,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                print_blob=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    except Exception:
        return True
    return False
