"""
How every process lives: start, ready, stop.

    start    logging, uvloop, signals, the admin port; then `main(stopping, ready)` runs
    ready    `main` calls ready(True); a starter that passed AIVEDIO_READY_FD reads one line there
    stop     SIGTERM, SIGINT or the owner's death set `stopping`; `main` winds up and returns
    bounded  a `main` that has not returned in `stop_within` seconds is cancelled, then abandoned

A second signal exits at once. Exit status: 0 after a clean stop, 1 when `main` failed, returned
unasked or had to be abandoned, 130 or 143 after a second signal.

A starter that must not be outlived (`aivedio up`) passes AIVEDIO_OWNER_FD, the reading end of a
pipe that it holds: when the pipe closes the process stops, however its owner died.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable

import uvloop
from prometheus_client import Gauge

from edge import admin, logs, orphan

Ready = Callable[[bool], None]
Main = Callable[[asyncio.Event, Ready], Awaitable[None]]

logger = logs.get(__name__)

READY = Gauge("aivedio_process_ready", "1 while the process can do its work.", ["process"])

_ABANDON_AFTER = 2.0
_ORPHAN_STOPS_WITHIN = 2.0


def run(
    name: str,
    main: Main,
    *,
    admin_port: int = 0,
    admin_host: str = admin.LOOPBACK,
    log_level: str = "info",
    stop_within: float = 30.0,
) -> int:
    """Live as the process `name` until told to stop, and return the exit status."""
    logs.configure(name, log_level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(name, main, admin_port, admin_host, stop_within=stop_within))


async def serve(
    name: str,
    main: Main,
    admin_port: int = 0,
    admin_host: str = admin.LOOPBACK,
    *,
    stop_within: float = 30.0,
) -> int:
    """
    Run `main` under this process's signals and return the exit status.

    `main` gets an event to watch and a function to report readiness with. It should return soon
    after the event is set; what it raises is logged and makes the status 1.
    """
    stopping = asyncio.Event()
    readiness = _Readiness(name)
    _own_signals(stopping)
    _follow_owner(asyncio.get_running_loop(), stopping)

    def is_ready() -> bool:
        return readiness.now and not stopping.is_set()

    async with admin.serving(admin_port, is_ready, admin_host):
        logger.info("process started", pid=os.getpid(), admin_port=admin_port)
        work = asyncio.ensure_future(main(stopping, readiness.set))
        told = asyncio.ensure_future(stopping.wait())
        await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
        asked = stopping.is_set()
        told.cancel()
        readiness.set(False)
        if not work.done() and not await _wind_up(work, stop_within):
            return 1
    return _status(work, asked)


class _Readiness:
    """Whether the process can work, told to the admin port and once to whoever started it."""

    def __init__(self, name: str) -> None:
        self.now = False
        self._gauge = READY.labels(name)
        self._gauge.set(0)
        self._starter = _descriptor("AIVEDIO_READY_FD")

    def set(self, ready: bool) -> None:
        if ready != self.now:
            self.now = ready
            self._gauge.set(int(ready))
            logger.info("process ready" if ready else "process not ready")
        if ready and self._starter is not None:
            try:
                os.write(self._starter, b"ready\n")
            except OSError:
                logger.warning("starter no longer listens")
            os.close(self._starter)
            self._starter = None


def _own_signals(stopping: asyncio.Event) -> None:
    def on_signal(number: signal.Signals) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        logger.info("stopping", signal=number.name)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)


def _follow_owner(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    """Stop soon after the owner's end of the pipe closes, even when the loop is stuck."""
    held = _descriptor("AIVEDIO_OWNER_FD")
    if held is None:
        return

    def follow() -> None:
        orphan.wait_for_close(held)
        try:
            loop.call_soon_threadsafe(stopping.set)
        except RuntimeError:  # the loop has ended already
            return
        time.sleep(_ORPHAN_STOPS_WITHIN)
        os._exit(1)

    threading.Thread(target=follow, name="owner", daemon=True).start()


async def _wind_up(work: asyncio.Future[None], stop_within: float) -> bool:
    """Give `work` its time, then cancel it; answer whether it has ended."""
    await asyncio.wait({work}, timeout=stop_within)
    if work.done():
        return True
    logger.error("stopping took too long", seconds=stop_within)
    work.cancel()
    await asyncio.wait({work}, timeout=_ABANDON_AFTER)
    if work.done():
        return True
    logger.error("process abandoned its work")
    os._exit(1)


def _status(work: asyncio.Future[None], asked: bool) -> int:
    if work.cancelled():
        return 1
    error = work.exception()
    if error is not None:
        logger.error("process failed", exc_info=error)
        return 1
    if not asked:
        logger.error("process ended unasked")
        return 1
    logger.info("process stopped")
    return 0


def _descriptor(variable: str) -> int | None:
    """Take an inherited descriptor's number out of the environment, so that no child takes it."""
    text = os.environ.pop(variable, "")
    if not text.isdecimal():
        return None
    number = int(text)
    os.set_inheritable(number, False)
    return number
