"""
Whom the embedded servers run as.

PostgreSQL refuses to run as root. So when we are root, both servers run as user nobody, and the
folders and programs that they need must be within nobody's reach; otherwise they run as we do.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_USER = "nobody"


class NoAccount(Exception):
    """There is nobody to run the servers as; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group; `switch` says whether we must change to it."""

    uid: int
    gid: int
    switch: bool

    @property
    def popen(self) -> dict[str, Any]:
        """Arguments of subprocess.Popen that run a program as this account."""
        if not self.switch:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path, mode: int) -> None:
        """Give a file or folder to this account, closed to everybody else as `mode` says."""
        path.chmod(mode)
        if self.switch:
            os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Answer whether this account may enter the folder, or run the program, at `path`."""
        if not self.switch:
            return os.access(path, os.X_OK)
        # /bin/sh asks as the account itself: ACLs and mount options count too.
        asked = subprocess.run(
            ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self.popen,
        )
        return asked.returncode == 0


def for_servers() -> Account:
    """Return the account that the embedded servers run as; raises NoAccount."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switch=False)
    try:
        entry = pwd.getpwnam(_USER)
    except KeyError:
        raise NoAccount(
            "PostgreSQL does not run as root, and this machine has no user nobody. "
            "Run `aivedio up` as a plain user."
        ) from None
    return Account(entry.pw_uid, entry.pw_gid, switch=True)
