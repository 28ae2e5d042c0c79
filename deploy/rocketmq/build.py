"""
Gets what the servers are made of: jars from Maven Central, kept in a cache outside the tree.

It is done once for each version of `pom.xml` and the agent. A build that is cut off leaves nothing
that the next one would take for complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
TRIES = 3
PAUSE = 5.0
WITHIN = 600.0

Say = Callable[[str], None]


class CannotBuild(Exception):
    """The servers cannot be had; the text says what to do."""


def cache() -> Path:
    """Return where everything is kept: AIVEDIO_CACHE, or a folder in the user's cache."""
    given = os.environ.get("AIVEDIO_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(given) if given else Path(home) / "aivedio") / "rocketmq"


def found() -> Path:
    """Return the folder with `loopback-only.jar` and `lib/`, or raise CannotBuild."""
    place = cache() / _version()
    if not place.is_dir():
        raise CannotBuild("RocketMQ is not here yet: run `python -m deploy.rocketmq fetch`")
    return place


def built(say: Say) -> Path:
    """
    Return what `found` does, building it if it is not there.

    Raises CannotBuild when Java or Maven is missing, or Maven Central cannot be reached.
    """
    place = cache() / _version()
    if place.is_dir():
        return place
    require_tools()
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            _build(place, say)
    return place


def require_tools() -> None:
    """Raise CannotBuild, naming what to install, unless Java (a JDK) and Maven are here."""
    missing = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    if missing:
        raise CannotBuild(
            f"RocketMQ needs Java and Maven ({', '.join(missing)} not found). On Debian, as root:\n"
            "  apt-get install openjdk-17-jdk-headless maven"
        )


def _build(place: Path, say: Say) -> None:
    new = place.with_name("new")
    say("Getting RocketMQ from Maven Central (once, about 110 MB)")
    for number in range(1, TRIES + 1):
        shutil.rmtree(new, ignore_errors=True)
        said = _maven(new)
        if said is None:
            new.rename(place)
            return
        if number < TRIES:
            say(f"  try {number} of {TRIES} failed, once more in {PAUSE:.0f} s")
            time.sleep(PAUSE)
    raise CannotBuild(
        f"Maven could not get RocketMQ in {TRIES} tries. Is Maven Central, or the mirror in "
        f"~/.m2/settings.xml, reachable? It said last:\n{said}"
    )


def _maven(target: Path) -> str | None:
    """Run Maven; return None if it worked, else the end of what it said."""
    command = ["mvn", "-B", "-q", "-f", str(HERE / "pom.xml"), f"-Dbuilt={target}", "package"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN,
        )
    except subprocess.TimeoutExpired:
        return f"  nothing within {WITHIN:.0f} s"
    if done.returncode == 0:
        return None
    return "\n".join(f"  {line}" for line in done.stdout.splitlines()[-12:])


def _version() -> str:
    digest = hashlib.sha256()
    for path in (HERE / "pom.xml", *sorted((HERE / "agent").glob("*.java"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
