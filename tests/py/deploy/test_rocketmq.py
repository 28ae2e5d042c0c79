"""The recipe for a RocketMQ of one machine: on the loopback, shared, and gone with its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.rocketmq import build
from deploy.rocketmq.servers import PORTS, Ports
from tests.py.support.ports import free_ports
from tests.py.support.processes import ROOT, alive, children
from tests.py.support.waiting import eventually

RUN = [sys.executable, "-m", "deploy.rocketmq", "run"]
LISTENING = "0A"


def listening(ports: set[int]) -> dict[int, set[str]]:
    """Return the addresses, as the kernel writes them, on which somebody listens at these ports."""
    found: dict[int, set[str]] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            address, _, port = local.partition(":")
            if state == LISTENING and int(port, 16) in ports:
                found.setdefault(int(port, 16), set()).add(address)
    return found


@pytest.mark.xdist_group("rocketmq")
@pytest.mark.timeout(400)
def test_it_listens_on_the_loopback_is_shared_and_ends_with_its_owner(tmp_path: Path) -> None:
    base = free_ports(PORTS)
    ports = Ports.from_base(base)
    where = ["--folder", str(tmp_path / "data"), "--base-port", str(base)]
    log = (tmp_path / "log").open("wb")
    reading, writing = os.pipe()
    owner = subprocess.Popen(
        [*RUN, *where, "--until-input-ends"], cwd=ROOT, stdin=reading, stderr=log
    )
    os.close(reading)
    try:
        eventually(lambda: "RocketMQ runs" in (tmp_path / "log").read_text(), 200)
        servers = children(owner.pid)
        assert len(servers) == 2
        open_to = listening(set(range(base, base + PORTS)))
        assert set(open_to) == set(ports.all)
        loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
        assert set.union(*open_to.values()) <= loopback

        second = subprocess.run(
            [*RUN, *where, "--", "printenv", "AIVEDIO_ROCKETMQ_ENDPOINTS"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert second.stdout == f"{ports.endpoints}\n", "it uses what is there"
        assert all(alive(server) for server in servers), "and leaves it running"

        third = subprocess.run(
            [*RUN, "--folder", str(tmp_path / "other"), "--base-port", str(base)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert third.returncode == 1
        assert f"Port {base} is in use" in third.stderr

        os.kill(owner.pid, signal.SIGKILL)
        owner.wait(10)
        eventually(lambda: not any(alive(server) for server in servers), 20)
    finally:
        os.close(writing)
        owner.kill()
        owner.wait(10)
        log.close()


def test_without_java_or_maven_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIVEDIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.CannotBuild, match="apt-get install openjdk-17-jdk-headless maven"):
        build.built(lambda line: None)
    with pytest.raises(build.CannotBuild, match="deploy.rocketmq fetch"):
        build.found()


def test_a_repository_that_is_away_is_tried_again_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("java", "javac", "mvn"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho no route to host\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("AIVEDIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(build, "PAUSE", 0.0)
    said: list[str] = []
    with pytest.raises(build.CannotBuild, match="in 3 tries.*\n.*no route to host"):
        build.built(said.append)
    assert [line for line in said if "once more" in line] == [
        "  try 1 of 3 failed, once more in 0 s",
        "  try 2 of 3 failed, once more in 0 s",
    ]
    assert not any(build.cache().glob("*/lib"))
