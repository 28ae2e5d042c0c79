"""What operators do: each action on a database where much has gone wrong."""

from __future__ import annotations

import uuid
from typing import Any

from edge.console.actions import ACTIONS
from tests.py.conftest import Connect
from tests.py.console.running import WHO, Console, bearer
from tests.py.console.seed import Seed
from tests.py.support.sessions import rows, value

WHY = "a test of the page"


async def done(console: Console, name: str, **body: Any) -> Any:
    answer = await console.act(name, reason=WHY, **body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["action"] == name
    assert (answer.json()["who"], answer.json()["reason"]) == (WHO, WHY)
    return answer.json()["result"]


def audited(connect: Connect) -> list[tuple[str, str]]:
    return [
        (action, subject)
        for action, subject in rows(
            connect(),
            "select action, subject from aivedio.operator_actions where actor = %s and reason = %s"
            " order by id",
            WHO,
            WHY,
        )
    ]


def status(connect: Connect, task: str) -> str:
    found: str = value(
        connect(), "select status from aivedio.generation_tasks where id = %s", uuid.UUID(task)
    )
    return found


async def test_a_dead_callback_is_rehearsed_then_applied(
    console: Console, seed: Seed, connect: Connect
) -> None:
    rehearsed = await console.act("rehearse_callback", callback=seed.callback)
    told = rehearsed.json()["result"]
    assert (told["dry_run"], told["verdict"], told["task_id"]) == (True, "applied", seed.waits)
    assert (told["before"]["status"], told["after"]["status"]) == ("running", "provider_succeeded")
    assert "prompt" not in told["before"]
    assert status(connect, seed.waits) == "running"
    assert audited(connect) == []
    told = await done(console, "replay_callback", callback=seed.callback)
    assert (told["dry_run"], told["verdict"]) == (False, "applied")
    assert status(connect, seed.waits) == "provider_succeeded"
    assert audited(connect) == [("replay_callback", str(seed.callback))]
    again = await console.act("replay_callback", callback=seed.callback, reason=WHY)
    assert (again.status_code, again.json()["code"]) == (409, "unfit")


async def test_a_callback_of_nobody_can_be_rehearsed(console: Console, seed: Seed) -> None:
    told = (await console.act("rehearse_callback", callback=seed.orphan)).json()["result"]
    assert (told["task_id"], told["before"], told["status"]) == (None, None, "dead")


async def test_what_waits_goes_on(console: Console, seed: Seed, connect: Connect) -> None:
    assert await done(console, "requeue_callback", callback=seed.callback) is True
    assert await done(console, "requeue_outbox", message=seed.message) is True
    assert (await console.look("parked"))["parked"] == []
    gone: list[tuple[str, Any]] = [
        ("requeue_callback", {"callback": 0}),
        ("requeue_outbox", {"message": seed.message}),
    ]
    for name, body in gone:
        answer = await console.act(name, reason=WHY, **body)
        assert (answer.status_code, answer.json()["code"]) == (409, "unfit")
    assert audited(connect) == [
        ("requeue_callback", str(seed.callback)),
        ("requeue_outbox", str(seed.message)),
    ]


async def test_dead_letters(console: Console, seed: Seed, connect: Connect) -> None:
    letters = (await console.look("letters/media"))["letters"]
    one = await done(console, "requeue_dead_letters", group="media", letters=[letters[0]["id"]])
    assert one == {"messages": 1}
    assert await done(
        console, "purge_dead_letters", group="media", before="2000-01-01T00:00:00Z"
    ) == {"messages": 0}
    assert await done(console, "purge_dead_letters", group="media", before=None) == {"messages": 1}
    assert (await console.look("letters/media"))["letters"] == []
    assert audited(connect) == [("requeue_dead_letters", "media"), ("purge_dead_letters", "media")]
    unknown = await console.act("requeue_dead_letters", group="x", letters=None, reason=WHY)
    assert unknown.status_code == 404


async def test_cases_alarms_and_circuits(console: Console, seed: Seed, connect: Connect) -> None:
    (conflict,) = (await console.look("cases?kind=conflict"))["cases"]
    unfit = await console.act("resolve_case", case=conflict["id"], resolution="failed", reason=WHY)
    assert (unfit.status_code, unfit.json()["code"]) == (409, "unfit")
    assert "Use what list_cases tells" in unfit.json()["detail"]
    kept = {"case": conflict["id"], "resolution": "kept"}
    assert await done(console, "resolve_case", **kept) == {"verdict": "applied"}
    assert await done(console, "resolve_case", **kept) == {"verdict": "duplicate"}
    parked = {"kind": "outbox_parked", "subject": str(seed.message)}
    assert await done(console, "resolve_alarm", **parked) is True
    assert (await console.act("resolve_alarm", reason=WHY, **parked)).status_code == 409
    circuit = {"provider": "runway", "credential": "default"}
    assert await done(console, "reset_circuit", **circuit) is True
    assert (await console.look("pipeline"))["circuits"] == {}
    assert (await console.act("reset_circuit", reason=WHY, **circuit)).status_code == 409
    missing = await console.act(
        "resolve_case", case=str(uuid.uuid4()), resolution="kept", reason=WHY
    )
    assert missing.status_code == 404
    assert [action for action, _ in audited(connect)] == [
        "resolve_case",
        "resolve_alarm",
        "reset_circuit",
    ]


async def test_attempts(console: Console, seed: Seed, connect: Connect) -> None:
    started = await done(console, "start_attempt", task=seed.over, key="once")
    assert (started["verdict"], started["status"]) == ("applied", "created")
    assert (await done(console, "start_attempt", task=seed.over, key="once"))[
        "verdict"
    ] == "duplicate"
    early = await console.act("start_attempt", task=seed.waits, key="once", reason=WHY)
    assert (early.status_code, early.json()["code"]) == (409, "unfit")
    (case,) = (await console.look("cases?kind=stale_success"))["cases"]
    adopt = {"task": seed.twice, "attempt": case["attempt_id"]}
    assert (await done(console, "adopt_attempt", **adopt))["verdict"] == "applied"
    assert status(connect, seed.twice) == "provider_succeeded"
    assert (await console.look("cases?kind=stale_success"))["cases"] == []
    for name, body in (
        ("start_attempt", {"task": str(uuid.uuid4()), "key": "k"}),
        ("adopt_attempt", {"task": seed.over, "attempt": case["attempt_id"]}),
    ):
        assert (await console.act(name, reason=WHY, **body)).status_code == 404
    assert [action for action, _ in audited(connect)] == ["start_attempt", "adopt_attempt"]


UNFIT: list[tuple[str, dict[str, Any], str, int]] = [
    ("requeue_outbox", {"message": 1}, "reason_missing", 422),
    ("requeue_outbox", {"message": 1, "reason": "  "}, "reason_missing", 422),
    ("requeue_outbox", {"message": 1, "reason": 7}, "bad_argument", 422),
    ("requeue_outbox", {"message": 1, "reason": "x" * 1001}, "bad_argument", 422),
    ("requeue_outbox", {"message": 1, "reason": "a\0b"}, "bad_argument", 422),
    ("requeue_outbox", {"message": "1", "reason": "r"}, "bad_argument", 422),
    ("requeue_outbox", {"message": True, "reason": "r"}, "bad_argument", 422),
    ("requeue_outbox", {"message": 2**53, "reason": "r"}, "bad_argument", 422),
    ("requeue_outbox", {"message": -1, "reason": "r"}, "bad_argument", 422),
    ("requeue_outbox", {"message": 1, "more": 1, "reason": "r"}, "bad_argument", 422),
    ("resolve_case", {"case": "x", "resolution": "kept", "reason": "r"}, "bad_argument", 422),
    ("resolve_alarm", {"kind": "", "subject": "x", "reason": "r"}, "bad_argument", 422),
    ("resolve_alarm", {"kind": "a\0", "subject": "x", "reason": "r"}, "bad_argument", 422),
    ("resolve_alarm", {"kind": "x" * 501, "subject": "x", "reason": "r"}, "bad_argument", 422),
    (
        "requeue_dead_letters",
        {"group": "media", "letters": [], "reason": "r"},
        "bad_argument",
        422,
    ),
    (
        "requeue_dead_letters",
        {"group": "media", "letters": ["1"], "reason": "r"},
        "bad_argument",
        422,
    ),
    (
        "purge_dead_letters",
        {"group": "media", "before": "yesterday", "reason": "r"},
        "bad_argument",
        422,
    ),
    (
        "purge_dead_letters",
        {"group": "media", "before": "2026-01-01T00:00:00", "reason": "r"},
        "bad_argument",
        422,
    ),
    ("drop_everything", {"reason": "r"}, "not_found", 404),
]


async def test_what_does_not_fit_is_refused(console: Console) -> None:
    for name, body, code, http in UNFIT:
        answer = await console.act(name, **body)
        assert (answer.status_code, answer.json()["code"]) == (http, code), (name, body)


async def test_bodies_are_bounded_json(console: Console) -> None:
    path = "/api/actions/requeue_outbox"
    json = {**bearer(), "content-type": "application/json"}
    for content, headers, http in (
        (b"{", json, 400),
        (b"[]", json, 400),
        (b"{}", bearer(), 415),
        (b'{"reason": "' + b"x" * 300_000 + b'"}', json, 413),
    ):
        answer = await console.client.post(path, content=content, headers=headers)
        assert answer.status_code == http
    assert (await console.client.get(path, headers=bearer())).status_code == 405


def test_every_action_is_one_that_the_documentation_names() -> None:
    from tests.py.support.schema import ROOT

    page = (ROOT / "docs" / "console.md").read_text()
    for name in ACTIONS:
        assert name == "rehearse_callback" or f"`{name}`" in page, name
