"""
What every process writes to stderr: one JSON object a line, by structlog.

The event text is constant and the values are fields, so that a log can be searched. `trace_id`
is bound once and then stands in every line of the same task. Bodies, URLs, secrets and tokens
are never logged, nor are PostgreSQL's words in a traceback: they quote the row they complain about.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import structlog
from structlog.typing import ExcInfo, FilteringBoundLogger

from edge import errors

LEVELS = ("debug", "info", "warning", "error")


def configure(process: str, level: str = "info") -> None:
    """Send structlog and the standard library's loggers to stderr as JSON lines."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(process=process)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(_story),
    ]
    number = getattr(logging, level.upper())
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=_dumps)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # Libraries (uvicorn, httpx, psycopg) log through the standard library; httpx names URLs at
    # level info, hence the floor.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(serializer=_dumps),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(number, logging.WARNING))


def get(name: str) -> FilteringBoundLogger:
    """Return the logger of a module: `logger = logs.get(__name__)`."""
    logger: FilteringBoundLogger = structlog.get_logger(module=name)
    return logger


@contextmanager
def tracing(trace_id: str | None) -> Iterator[None]:
    """Put `trace_id` into every line that is logged inside the block."""
    with structlog.contextvars.bound_contextvars(trace_id=trace_id):
        yield


def _story(exc_info: ExcInfo) -> str:
    """Return the tracebacks of an exception and of those behind it, the first of them first."""
    _, error, _ = exc_info
    parts: list[str] = []
    for one in reversed(_behind(error)):
        parts += traceback.format_tb(one.__traceback__)
        if isinstance(one, errors.EdgeError) or hasattr(one, "sqlstate"):
            parts.append(f"{errors.describe(one)}\n")
        else:
            parts += traceback.format_exception_only(one)
    return "".join(parts).rstrip()


def _behind(error: BaseException) -> list[BaseException]:
    """Return an exception, then its cause or context, or the members of its group, and so on."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.append(one)
        if isinstance(one, BaseExceptionGroup):
            waiting += reversed(one.exceptions)
        follows = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if follows is not None:
            waiting.append(follows)
    return found


def _dumps(event: object, default: object = None) -> str:
    return orjson.dumps(event, default=repr).decode()
