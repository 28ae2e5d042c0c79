"""Histories run in a database with the model's providers; nothing of them is ever committed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.py.conftest import Connect, Connection
from tests.py.convergence.history import History
from tests.py.convergence.payloads import prepare


@pytest.fixture
def session(connect: Connect) -> Connection:
    """Return a session of a database in which the model's providers are defined."""
    session = connect()
    prepare(session)
    session.commit()
    return session


@pytest.fixture
def history(session: Connection) -> Iterator[History]:
    """Return a history that has not begun."""
    history = History(session)
    yield history
    history.close()
