"""
The data folder of `aivedio up`: one owner at a time, secrets closed to everybody else.

    lock            held (flock) by whoever uses the folder, and by the servers that it started,
                    so that it is free exactly when nothing of it runs any more
    secrets.json    0600: passwords, signing keys, the demo project; made once
    postgres/       the cluster        run/   sockets        log/   what the processes write
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from edge.cli.account import Account

_LOCK_PATIENCE = 3.0
# sun_path holds 108 bytes; PostgreSQL appends "/.s.PGSQL.5432.lock".
_SOCKET_FOLDER_LIMIT = 107 - 20


class FolderUnusable(Exception):
    """The data folder cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Made once per data folder. The ids name the project that the page shows."""

    postgres_password: str
    database_password: str
    redis_password: str
    jwt_secret: str
    provider_token: str
    webhook_secret: str
    tenant_id: str
    project_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A data folder that this process owns until it and its servers have ended."""

    path: Path
    account: Account
    lock: int
    secrets: Secrets
    sockets: Path
    ephemeral: bool

    @property
    def postgres(self) -> Path:
        """The cluster's data directory; it exists once initdb has completed."""
        return self.path / "postgres"

    @property
    def logs(self) -> Path:
        """Where the servers and processes write what they have to say."""
        return self.path / "log"

    @property
    def temporary(self) -> list[Path]:
        """What whoever stops last must remove."""
        if self.ephemeral:
            return [self.path, self.sockets]
        return [] if self.sockets.parent == self.path else [self.sockets]


def default_path() -> Path:
    """Return where data is kept when nothing else is said."""
    if os.geteuid() == 0:
        return Path("/var/lib/aivedio")
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "aivedio"


@contextmanager
def owned(path: Path | None, account: Account) -> Iterator[Folder]:
    """
    Own the folder at `path` inside the block, made if missing; None means a temporary one.

    Raises FolderUnusable when somebody uses it, or when the servers' account cannot reach it;
    and at the end of the block when something that was started in it still runs.
    """
    ephemeral = path is None
    place = _temporary(account) if path is None else _named(path, account)
    lock = _lock(place)
    witness = os.open(place / "lock", os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            yield from _opened(place, account, lock, ephemeral)
        finally:
            os.close(lock)
        if not _comes_free(witness):
            raise FolderUnusable(f"Something that was started for {place} still runs.")
    finally:
        os.close(witness)


def _opened(place: Path, account: Account, lock: int, ephemeral: bool) -> Iterator[Folder]:
    (place / "log").mkdir(mode=0o700, exist_ok=True)
    folder = Folder(place, account, lock, _secrets(place), _sockets(place, account), ephemeral)
    try:
        yield folder
    finally:
        for path in folder.temporary:
            shutil.rmtree(path, ignore_errors=True)


def _named(path: Path, account: Account) -> Path:
    place = path.expanduser().resolve()
    try:
        if not place.exists():
            place.mkdir(mode=0o700, parents=True)
            if account.switch:
                place.chmod(0o711)
        if not (place / "lock").exists() and any(place.iterdir()):
            raise FolderUnusable(f"{place} holds other things: name a new or an empty folder.")
        owner = place.stat().st_uid
    except OSError as error:
        raise FolderUnusable(f"Cannot use the data folder {place}: {error.strerror}.") from error
    if owner != os.geteuid():
        raise FolderUnusable(f"{place} belongs to another user: name a folder of your own.")
    if account.switch and not account.reaches(place):
        raise FolderUnusable(
            f"User nobody cannot reach {place}, and PostgreSQL does not run as root. "
            "Name another folder with --data, for example /var/lib/aivedio."
        )
    return place


def _temporary(account: Account) -> Path:
    for base in (None, "/tmp", "/var/tmp"):
        place = Path(tempfile.mkdtemp(prefix="aivedio-", dir=base))
        if account.switch:
            place.chmod(0o711)
        if account.reaches(place):
            return place
        place.rmdir()
    raise FolderUnusable("User nobody can reach no temporary folder: name one with --data.")


def _lock(place: Path) -> int:
    try:
        lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FolderUnusable(f"Cannot use the data folder {place}: {error.strerror}.") from error
    # Servers whose owner was killed need a moment to end; a live owner does not go away.
    holder = os.pread(lock, 32, 0).decode().strip()
    if not _comes_free(lock, patience=0.0 if _alive(holder) else _LOCK_PATIENCE):
        os.close(lock)
        raise FolderUnusable(
            f"{place} is in use by process {holder or 'unknown'}. Stop that `aivedio up` "
            "first, or name another folder with --data."
        )
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _comes_free(lock: int, patience: float = _LOCK_PATIENCE) -> bool:
    """Take the lock if its holders let go of it in time, and answer whether they did."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _alive(holder: str) -> bool:
    if not holder.isdecimal():
        return False
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _secrets(place: Path) -> Secrets:
    file = place / "secrets.json"
    try:
        return Secrets(**json.loads(file.read_text()))
    except FileNotFoundError:
        pass
    except (ValueError, TypeError) as error:
        raise FolderUnusable(
            f"{file} is damaged. Put it back from a copy, or remove {place} to begin anew."
        ) from error
    made = Secrets(
        postgres_password=secrets.token_urlsafe(24),
        database_password=secrets.token_urlsafe(24),
        redis_password=secrets.token_urlsafe(24),
        jwt_secret=secrets.token_urlsafe(48),
        provider_token="r8_" + secrets.token_hex(18),
        webhook_secret=_webhook_secret(),
        tenant_id=str(uuid.uuid4()),
        project_id=str(uuid.uuid4()),
        user_id=str(uuid.uuid4()),
    )
    new = place / "secrets.json.new"
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(asdict(made), stream, indent=2)
        stream.flush()
        os.fsync(stream.fileno())
    new.rename(file)
    return made


def _webhook_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _sockets(place: Path, account: Account) -> Path:
    sockets = place / "run"
    if len(os.fsencode(sockets)) > _SOCKET_FOLDER_LIMIT:
        sockets = Path(tempfile.mkdtemp(prefix="aivedio-", dir="/tmp"))
    sockets.mkdir(mode=0o700, exist_ok=True)
    account.own(sockets, 0o700)
    return sockets
