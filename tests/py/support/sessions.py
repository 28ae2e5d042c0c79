"""Statements that run beside the test, so that it can see them wait and let them go on."""

from __future__ import annotations

from threading import Thread
from typing import Any

import psycopg

from tests.py.support.waiting import wait_until_blocked

Connection = psycopg.Connection[Any]
Rows = list[tuple[Any, ...]]


class Running:
    """A statement that was sent on a session of its own and may be waiting for a lock."""

    def __init__(self, session: Connection, query: str, *arguments: object) -> None:
        self._session = session
        self._rows: Rows = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(query, arguments), daemon=True)
        self._thread.start()

    def _run(self, query: str, arguments: tuple[object, ...]) -> None:
        try:
            self._rows = rows(self._session, query, *arguments)
        except BaseException as error:
            self._error = error

    def is_blocked(self, conninfo: str) -> None:
        """Return once the statement waits for another session's lock."""
        wait_until_blocked(conninfo, self._session.info.backend_pid)

    def is_done(self) -> bool:
        """Return whether the statement has ended, well or not."""
        return not self._thread.is_alive()

    def result(self, timeout: float = 20.0) -> Rows:
        """Return the statement's rows, or raise what it raised."""
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the statement never ended"
        if self._error is not None:
            raise self._error
        return self._rows


def rows(session: Connection, query: str, *arguments: object) -> Rows:
    """Run one statement and return its rows."""
    cursor = session.execute(query.encode(), arguments)
    return cursor.fetchall() if cursor.description else []


def value(session: Connection, query: str, *arguments: object) -> Any:
    """Run one statement and return the only column of its only row."""
    ((answer,),) = rows(session, query, *arguments)
    return answer
