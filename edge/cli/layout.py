"""What `aivedio up` runs and where: ports, processes, and the environment that each gets."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edge.cli.fleet import Part
from edge.cli.folder import Folder
from edge.cli.processes import PROCESSES
from edge.cli.settings import Settings

DEFAULT_PORT = 8080
# Not from the range that the kernel hands out for outgoing connections: one of those may be
# taken in the moment before the process that is to listen there does.
_BLOCK = 32
_BLOCKS = range(20_000, 32_000, _BLOCK)

# The turn in which a process stops: first what takes in work, last what shows it.
_STOPS = {
    "submit": 0,
    "poll": 0,
    "webhook": 1,
    "inbox": 2,
    "consume": 2,
    "upkeep": 2,
    "relay": 3,
    "dispatch": 4,
    "gateway": 5,
    "console": 5,
}
# The provider goes after those who wait for its answers.
_STOPS_PRETENDED = {"pretend-provider": 1, "pretend-media": 0}


class PortTaken(Exception):
    """The port that was asked for is in use."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things of this run are reached. `pretend`: with a pretend provider and media plane."""

    database_url: str
    redis_url: str
    gateway: int
    webhook: int
    console: int
    provider: int
    admin: tuple[int, ...]
    pretend: bool

    @property
    def public_url(self) -> str:
        """The gateway as a browser on this machine sees it."""
        return f"http://127.0.0.1:{self.gateway}"

    @property
    def console_url(self) -> str:
        """The operators' page, likewise."""
        return f"http://127.0.0.1:{self.console}"

    @property
    def provider_url(self) -> str:
        """The pretend provider."""
        return f"http://127.0.0.1:{self.provider}"


@contextmanager
def places(port: int | None, pretend: bool, database_url: str, redis_url: str) -> Iterator[Places]:
    """Choose the ports that were not asked for, and keep other runs off them meanwhile."""
    guard, (gateway, webhook, console, provider, *admin) = _free_block()
    with guard:
        yield Places(
            database_url,
            redis_url,
            port or gateway,
            webhook,
            console,
            provider,
            tuple(admin),
            pretend,
        )


def page_port(asked: int | None) -> int | None:
    """Return the port of the page: the one asked for, else the usual one, else None for any."""
    wanted = asked or DEFAULT_PORT
    if _is_free(wanted):
        return wanted
    if asked is None:
        return None
    raise PortTaken(f"Port {asked} is in use: choose another with --port.")


def parts(where: Places, *, attended: bool = True) -> list[Part]:
    """
    Return every process of this run, each with an admin port of its own.

    Where nobody attends there is no page for operators.
    """
    stops = _STOPS | (_STOPS_PRETENDED if where.pretend else {})
    if not attended:
        del stops["console"]
    return [
        Part(name, turn, {"AIVEDIO_ADMIN_PORT": str(port)}, PROCESSES[name].winds_up)
        for (name, turn), port in zip(stops.items(), where.admin, strict=False)
    ]


def environment(settings: Settings, data: Folder, where: Places) -> dict[str, str]:
    """Return what all processes find in their environment: ours, and what we add."""
    own = {
        "AIVEDIO_DATABASE_URL": where.database_url,
        "AIVEDIO_REDIS_URL": where.redis_url,
        "AIVEDIO_PUBLIC_URL": where.public_url,
        "AIVEDIO_CALLBACK_URL": f"http://127.0.0.1:{where.webhook}",
        "AIVEDIO_GATEWAY_LISTEN": f"127.0.0.1:{where.gateway}",
        "AIVEDIO_WEBHOOK_LISTEN": f"127.0.0.1:{where.webhook}",
        "AIVEDIO_CONSOLE_LISTEN": f"127.0.0.1:{where.console}",
        "AIVEDIO_CONSOLE_URL": where.console_url,
        "AIVEDIO_LOCAL": "true",
        "AIVEDIO_DRAIN_SECONDS": "0",
        "AIVEDIO_LOG_LEVEL": settings.log_level,
    }
    if settings.jwt_secret is None:
        own["AIVEDIO_JWT_SECRET"] = data.secrets.jwt_secret
    if where.pretend:
        own |= {
            "AIVEDIO_PRETEND_LISTEN": f"127.0.0.1:{where.provider}",
            "REPLICATE_API_TOKEN": data.secrets.provider_token,
            "REPLICATE_WEBHOOK_SECRET": data.secrets.webhook_secret,
        }
    return {**os.environ, **own}


def _free_block() -> tuple[socket.socket, list[int]]:
    """
    Return loopback ports that nobody listens on, and the socket that keeps other runs off them.

    A process listens seconds after its port was chosen; without the guard two runs that start
    together may choose the same.
    """
    for first in random.sample(_BLOCKS, len(_BLOCKS)):
        guard = socket.socket()
        try:
            guard.bind(("127.0.0.1", first))
            guard.listen()
        except OSError:
            guard.close()
            continue
        ports = [first + offset for offset in range(1, _BLOCK)]
        if all(_is_free(port) for port in ports):
            return guard, ports
        guard.close()
    raise PortTaken(f"No {_BLOCK} ports in a row are free from {_BLOCKS.start} on.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: the remains of an earlier connection do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
