"""`aivedio up` brings everything up, and nothing of it is left however it ends."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.py.support.ports import free_port
from tests.py.support.processes import command, descendants, holding, python_for_everybody
from tests.py.support.waiting import eventually

START_TIMEOUT = 120.0
PROCESSES = {
    *("webhook", "inbox", "poll", "submit", "relay", "dispatch", "consume", "gateway", "upkeep"),
    "console",
    *("pretend-provider", "pretend-media"),
}


@dataclass(slots=True)
class Up:
    """One `aivedio up` and what it has said."""

    process: subprocess.Popen[bytes]
    folder: Path
    output: Path

    def said(self) -> str:
        return self.output.read_text()

    def link(self) -> str:
        """Return the login link, once it is there."""

        def found() -> re.Match[str] | None:
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended:\n{self.said()}")
            return re.search(r"http://127\.0\.0\.1:\d+/login\?token=\S+", self.said())

        return eventually(found, START_TIMEOUT, "the link is printed").group()  # type: ignore[union-attr]

    def child(self, name: str) -> int:
        (pid,) = (pid for pid in descendants(self.process.pid) if command(pid).endswith(f" {name}"))
        return pid

    def ends(self) -> int:
        return self.process.wait(60)


StartUp = Callable[..., Up]


@pytest.fixture
def start_up(place: Path, tmp_path: Path) -> Iterator[StartUp]:
    started: list[Up] = []

    def start(*arguments: str, python: str = sys.executable, **popen: Any) -> Up:
        output = tmp_path / f"up-{len(started)}"
        data = [] if {"--once", "--ephemeral"} & {*arguments} else ["--data", str(place / "data")]
        if not any(argument.startswith(("--port", "--once")) for argument in arguments):
            data.append(f"--port={free_port()}")
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [python, "-m", "edge.cli.app", "up", *data, *arguments],
                stderr=stream,
                **{
                    "env": environment(TMPDIR=str(place)),
                    "stdin": subprocess.DEVNULL,
                    "stdout": stream,
                    **popen,
                },
            )
        started.append(Up(process, place / "data", output))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
    if started:
        eventually(lambda: nothing_holds(place / "data" / "lock"), 10.0)


def nothing_holds(lock: Path) -> bool:
    assert [f"{pid} {command(pid)}" for pid in holding(lock)] == []
    return True


def environment(**more: str) -> dict[str, str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("AIVEDIO_")}
    return {**clean, **more}


def test_everything_is_up_when_the_link_is_printed(start_up: StartUp) -> None:
    up = start_up()
    link = httpx.URL(up.link())
    names = {command(pid).rpartition(" ")[2] for pid in descendants(up.process.pid)}
    assert PROCESSES <= names
    with httpx.Client(base_url=f"http://{link.host}:{link.port}") as browser:
        entered = browser.get(link)
        assert entered.status_code in (302, 303)
        assert "httponly" in entered.headers["set-cookie"].lower()
        assert browser.get(entered.headers["location"]).status_code == 200
    assert httpx.get(link).status_code >= 400, "the link works once"
    found = re.search(r"Operate +(http://127\.0\.0\.1:\d+)(/login\?token=\S+)", up.said())
    assert found is not None
    with httpx.Client(base_url=found[1], follow_redirects=True) as browser:
        assert browser.get(found[2]).status_code == 200
        assert browser.get("/api/me").json()["role"] == "act"
        assert browser.get("/api/pipeline").json()["inbox_dead"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_in_order(number: signal.Signals, start_up: StartUp) -> None:
    up = start_up()
    up.link()
    below = descendants(up.process.pid)
    assert len(below) > len(PROCESSES)
    up.process.send_signal(number)
    assert up.ends() == 0
    assert holding(up.folder / "lock") == []
    for name in PROCESSES:
        log = (up.folder / "log" / f"{name}.log").read_text().splitlines()
        assert "process stopped" in log[-1], log[-1]


def test_sigkill_leaves_nothing(start_up: StartUp) -> None:
    up = start_up()
    up.link()
    lock = up.folder / "lock"
    assert len(holding(lock)) > len(PROCESSES)
    up.process.kill()
    up.ends()
    eventually(lambda: nothing_holds(lock), 5.0)


def test_sigkill_while_it_prepares_leaves_nothing(start_up: StartUp) -> None:
    up = start_up()
    eventually(lambda: "Bringing the database" in up.said(), 60.0, "it prepares")
    up.process.kill()
    up.ends()
    eventually(lambda: nothing_holds(up.folder / "lock"), 5.0)


def test_a_second_up_on_the_same_folder_is_refused(start_up: StartUp) -> None:
    first = start_up()
    first.link()
    second = start_up()
    assert second.ends() == 1
    assert f"in use by process {first.process.pid}" in second.said()
    assert first.process.poll() is None


def test_it_starts_again_after_sigkill_with_the_same_data(start_up: StartUp) -> None:
    first = start_up()
    first.link()
    first.process.kill()
    first.ends()
    second = start_up()
    second.link()
    assert "Making the database" not in second.said()


def test_a_process_that_dies_is_started_again_and_said_so(start_up: StartUp) -> None:
    up = start_up()
    up.link()
    before = up.child("inbox")
    os.kill(before, signal.SIGKILL)
    eventually(lambda: "inbox is ready again" in up.said(), 30.0, "inbox is back")
    assert up.child("inbox") != before
    assert "inbox ended" in up.said()


def test_a_port_that_is_taken_is_refused_before_anything_starts(start_up: StartUp) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = start_up(f"--port={port}")
        assert up.ends() == 1
    assert f"Port {port} is in use" in up.said()
    assert not (up.folder / "postgres").exists()


def test_once_prints_one_json_line_and_leaves_nothing(start_up: StartUp) -> None:
    up = start_up("--once", "--jobs=2", stdout=subprocess.PIPE)
    output, _ = up.process.communicate(timeout=180)
    assert up.process.returncode == 0, up.said()
    (line,) = output.decode().splitlines()
    report = json.loads(line)
    assert (report["jobs"], report["ready"], report["lost"]) == (2, 2, 0)
    assert descendants(up.process.pid) == []


def test_real_servers_are_used_where_the_environment_names_them(
    start_up: StartUp, place: Path, database: str, valkey: str
) -> None:
    up = start_up(
        "--once",
        env=environment(AIVEDIO_DATABASE_URL=database, AIVEDIO_REDIS_URL=valkey, TMPDIR=str(place)),
        stdout=subprocess.PIPE,
    )
    output, _ = up.process.communicate(timeout=180)
    assert up.process.returncode == 0, up.said()
    assert json.loads(output)["ready"] == 1
    with psycopg.connect(database) as session:
        ready = session.execute(
            "select count(*) from aivedio.generation_tasks where status = 'ready'"
        ).fetchone()
        override = session.execute("select override from aivedio.providers").fetchone()
    assert ready == (1,)
    assert override == ({},), "the profile no longer points at the pretend provider"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_plain_user_can_run_it(start_up: StartUp, place: Path, disk_place: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    (programs := disk_place / "programs").mkdir()
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    python, variables = python_for_everybody(programs)
    up = start_up(
        python=python,
        env=environment(**variables),
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
    )
    assert httpx.get(up.link()).status_code in (302, 303)
    up.process.terminate()
    assert up.ends() == 0


def test_enter_makes_a_new_link(start_up: StartUp) -> None:
    keyboard, terminal = os.openpty()
    try:
        up = start_up(stdin=terminal)
        first = up.link()
        os.write(keyboard, b"\n")
        eventually(lambda: up.said().count("login?token=") == 2, 10.0, "a second link")
        assert up.said().count(first) == 1
    finally:
        os.close(keyboard)
        os.close(terminal)
