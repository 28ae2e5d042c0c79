"""Waiting for facts, never for guesses of time: every wait asks again until its deadline."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import psycopg

Answer = TypeVar("Answer")

FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.1


def eventually(check: Callable[[], Answer], timeout: float = 10.0, what: str = "") -> Answer:
    """
    Return the first true answer of `check`.

    Raises AssertionError, naming `what` (or the check) and its last answer, when the deadline
    passes first. An AssertionError of the check itself counts as a no.
    """
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while True:
        last: object
        try:
            answer = check()
        except AssertionError as error:
            last = error
        else:
            if answer:
                return answer
            last = answer
        if time.monotonic() >= deadline:
            raise AssertionError(_never(check, timeout, what, last))
        time.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 1.5)


@overload
async def eventually_async(
    check: Callable[[], Awaitable[Answer]], timeout: float = 10.0, what: str = ""
) -> Answer: ...


@overload
async def eventually_async(
    check: Callable[[], Answer], timeout: float = 10.0, what: str = ""
) -> Answer: ...


async def eventually_async(check: Callable[[], Any], timeout: float = 10.0, what: str = "") -> Any:
    """Do what `eventually` does without holding the event loop; the check may be a coroutine."""
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while True:
        last: object
        try:
            given = check()
            answer = await given if inspect.isawaitable(given) else given
        except AssertionError as error:
            last = error
        else:
            if answer:
                return answer
            last = answer
        if time.monotonic() >= deadline:
            raise AssertionError(_never(check, timeout, what, last))
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 1.5)


def wait_until_blocked(conninfo: str, pid: int, timeout: float = 10.0) -> None:
    """Return once the backend `pid` waits for another session's lock."""
    with psycopg.connect(conninfo, autocommit=True) as watcher:
        eventually(
            lambda: _blockers(watcher, pid), timeout, f"backend {pid} waits for somebody's lock"
        )


def wait_until_idle(conninfo: str, pid: int, timeout: float = 10.0) -> None:
    """Return once the backend `pid` has answered and waits for its client, or is gone."""
    with psycopg.connect(conninfo, autocommit=True) as watcher:
        eventually(
            lambda: (
                not watcher.execute(
                    "select 1 from pg_stat_activity where pid = %s and state = 'active'", [pid]
                ).fetchone()
            ),
            timeout,
            f"backend {pid} is idle",
        )


def _blockers(watcher: psycopg.Connection[tuple[object, ...]], pid: int) -> list[int]:
    row = watcher.execute("select pg_blocking_pids(%s)", [pid]).fetchone()
    return row[0] if row else []  # type: ignore[return-value]


def _never(check: object, timeout: float, what: str, last: object) -> str:
    name = what or getattr(check, "__qualname__", repr(check))
    return f"never became true within {timeout:g} s: {name} (last answer: {last!r})"
