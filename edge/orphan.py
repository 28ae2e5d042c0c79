"""
Processes that do not outlive their owner, however it dies.

Two means, because neither covers everything: the kernel's parent-death signal (Linux only, lost
when the direct parent is not the owner) and a pipe that the owner holds open and never writes to.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def dies_with(parent: int, number: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """
    Make a `preexec_fn` that has the kernel send `number` to the child when `parent` dies.

    Call it from the parent's main thread: the kernel watches the thread that forks. It is looked
    up before the fork, so that the child only makes two system calls.
    """
    if sys.platform != "linux":
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask


def wait_for_close(reading_end: int) -> None:
    """Block until every writing end of the pipe is closed."""
    while os.read(reading_end, 512):
        pass
