"""
Prints constraints.txt: the exact version of every package in an environment but this project.

    python deploy/lock.py .venv/bin/python > constraints.txt

Which packages, pyproject.toml says; which versions, this file. It names no host: pip asks
whatever index the machine is set up with.
"""

from __future__ import annotations

import subprocess
import sys

HEADER = """\
# Made by `make lock` from an environment that pyproject.toml describes. `make install` uses it.
"""
TOOLS = ("pip", "setuptools", "wheel")


def main(python: str) -> None:
    """Write the constraints to standard output."""
    frozen = subprocess.run(
        [python, "-m", "pip", "freeze", "--exclude-editable", "--all"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    pins = [line for line in frozen if "==" in line and not line.startswith("#")]
    pins = [line for line in pins if line.split("==")[0] not in TOOLS]
    sys.stdout.write(HEADER + "\n".join(sorted(pins, key=str.lower)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
