"""What a process writes about errors tells where they arose, and nothing that they quote."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import orjson
import psycopg
import pytest
import structlog

from edge import errors, logs
from edge.database import translated

ROW = "https://provider.example/private-output"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is logged; afterwards logging is as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    logs.configure("test")
    yield written
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers, root.level = handlers, level


def line(said: io.StringIO) -> dict[str, str]:
    (only,) = said.getvalue().splitlines()
    told: dict[str, str] = orjson.loads(only)
    return told


def break_a_constraint(conninfo: str) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute("create temporary table private (url text, missing text not null)")
        connection.execute("insert into private values (%s, null)", [ROW])


def test_a_traceback_does_not_quote_the_row(database: str, said: io.StringIO) -> None:
    try:
        break_a_constraint(database)
    except psycopg.Error as error:
        assert ROW in str(error)
        logs.get(__name__).error("it broke", exc_info=error)
    told = line(said)["exception"]
    assert "break_a_constraint" in told
    assert told.endswith("NotNullViolation 23502")
    assert ROW not in told


def test_a_library_s_traceback_does_not_quote_it_either(database: str, said: io.StringIO) -> None:
    """uvicorn and asyncio report what nobody caught."""
    try:
        try:
            break_a_constraint(database)
        except psycopg.Error as error:
            raise ExceptionGroup("several", [RuntimeError("our own words"), error]) from error
    except ExceptionGroup:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
    told = line(said)["exception"]
    assert "our own words" in told
    assert "23502" in told
    assert ROW not in told


def test_an_error_is_described_by_words_of_ours_only() -> None:
    assert errors.describe(errors.Rejected("no such task", code="VC404")) == (
        "Rejected VC404: no such task"
    )
    assert errors.describe(errors.DatabaseDown("no answer in time")) == (
        "DatabaseDown: no answer in time"
    )
    assert errors.describe(errors.BadValue(f"invalid: {ROW}", code="22P02")) == "BadValue 22P02"
    assert errors.describe(psycopg.errors.NotNullViolation(ROW)) == "NotNullViolation 23502"
    assert errors.describe(ValueError(ROW)) == "ValueError"


async def test_a_database_that_became_a_standby_is_down(database: str) -> None:
    with pytest.raises(errors.DatabaseDown), translated():
        async with await psycopg.AsyncConnection.connect(database) as connection:
            await connection.execute("set transaction read only")
            await connection.execute("create table public.anything ()")
