"""
Keeps one server alive exactly as long as the test run.

    python keeper.py ALIVE FOLDER SIGNAL USER -- COMMAND…

The runner holds an exclusive lock on the file ALIVE. The kernel drops that lock when the runner
ends, however it ends; then the server is sent SIGNAL, FOLDER is removed, and by the last keeper
the run's folder too. Should the keeper itself be killed, the kernel sends the server SIGNAL
(PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1


def become(user: str, ending: int) -> Callable[[], None]:
    """Return what a child does between fork and exec: drop root, then tie its life to ours."""
    entry = pwd.getpwnam(user) if user else None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def child() -> None:
        if entry is not None:
            os.setgroups([])
            os.setgid(entry.pw_gid)
            os.setuid(entry.pw_uid)
        prctl(PR_SET_PDEATHSIG, ending)  # after setuid, which clears it

    return child


def main(alive: str, folder: str, ending: int, user: str, command: list[str]) -> int:
    """Run the server until it ends or the runner does."""
    with (Path(folder) / "log").open("ab") as log:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=become(user, ending),
            cwd=folder,
        )
    (Path(folder) / "pid").write_text(str(server.pid))

    runner_ended = threading.Event()

    def stop_with_the_runner() -> None:
        try:
            with Path(alive).open("rb") as held:
                fcntl.flock(held, fcntl.LOCK_SH)
        except FileNotFoundError:
            pass  # the runner ended before we looked
        runner_ended.set()
        server.send_signal(ending)

    signal.signal(signal.SIGTERM, lambda *_: server.send_signal(ending))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=stop_with_the_runner, daemon=True).start()
    code = server.wait()
    if code:
        shutil.copy(Path(folder) / "log", f"{folder}.log")  # why it would not start
    shutil.rmtree(folder, ignore_errors=True)
    run = Path(alive).parent
    if runner_ended.is_set() and not any(run.glob("*/pid")):
        shutil.rmtree(run, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[6:]))
