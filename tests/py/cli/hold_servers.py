"""
Holds embedded servers for tests: `python -m tests.py.cli.hold_servers [FOLDER]`.

Prints one JSON line once they answer, and stops them when its standard input ends.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from edge.cli import account, embedded, folder


def main() -> int:
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        with (
            folder.owned(place, account.for_servers()) as data,
            embedded.running(data, lambda _step: None) as servers,
        ):
            known = {"owner": os.getpid(), "folder": str(data.path), "sockets": str(data.sockets)}
            sys.stdout.write(json.dumps(known | asdict(servers)) + "\n")
            sys.stdout.flush()
            sys.stdin.read()
    except (account.NoAccount, folder.FolderUnusable, embedded.ServerFailed) as error:
        sys.stdout.write(json.dumps({"refused": str(error)}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
