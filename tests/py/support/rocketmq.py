"""The run's RocketMQ: one name server and one broker, which tests may kill and start again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from deploy.rocketmq.build import found as installed
from deploy.rocketmq.servers import PORTS, Ports, Servers
from relay import rocketmq_topics
from relay.buses import Rocketmq
from relay.rocketmq_topics import Admin
from tests.py.support.clusters import Run
from tests.py.support.ports import free_ports
from tests.py.support.waiting import eventually

NAME_SERVER = "rocketmq-names"
BROKER = "rocketmq-broker"
GROUPS = {name: name in rocketmq_topics.ORDERLY for name in ("dispatcher", "media", "billing")}


@dataclass(slots=True)
class Broker:
    """The servers of a run. Their data outlives a kill, and goes with the run."""

    run: Run
    servers: Servers

    @property
    def admin(self) -> Admin:
        return Admin([self.servers.ports.name_servers])

    def pid(self, name: str = BROKER) -> int:
        """Return the process id of a server that runs."""
        return int((self.run.folder / name / "pid").read_text())

    def start(self) -> None:
        """Start what does not run, and return once the broker takes messages."""
        for name, command in (
            (NAME_SERVER, self.servers.name_server()),
            (BROKER, self.servers.broker()),
        ):
            if not (self.run.folder / name).exists():
                (self.run.folder / name).mkdir(mode=0o700)
                self.run.keep(self.run.folder / name, signal.SIGKILL, command, user="")
            if name == NAME_SERVER:
                assert self.servers.await_name_server(lambda: True)
        assert self.servers.await_broker(lambda: True)

    def kill(self, name: str = BROKER) -> None:
        """Kill a server with SIGKILL and wait until it is gone."""
        os.kill(self.pid(name), signal.SIGKILL)
        folder = self.run.folder / name
        eventually(lambda: not folder.exists(), 20, f"{name} is gone")

    @contextmanager
    def hung(self, name: str = BROKER) -> Iterator[None]:
        """Have a server do nothing for the length of a block."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def ready(self) -> None:
        """Have everything run, whatever a test left behind."""
        for name in (NAME_SERVER, BROKER):
            if (self.run.folder / name / "pid").exists():
                os.kill(self.pid(name), signal.SIGCONT)
        self.start()

    def topic(self) -> Rocketmq:
        """Return where a new topic with its groups is; `drop` removes it."""
        where = Rocketmq([self.servers.ports.endpoints], prefix=f"t{uuid4().hex[:8]}")
        self.make(where)
        return where

    def make(self, where: Rocketmq) -> None:
        self.admin.create(where.topic, {where.group(name): GROUPS[name] for name in GROUPS})
        eventually(lambda: self.admin.is_routed(where.topic), 10, "the topic is known")

    def drop(self, where: Rocketmq) -> None:
        self.admin.delete(where.topic, [where.group(name) for name in GROUPS])


def broker(run: Run) -> Broker:
    """Return the run's broker, starting it if nobody has yet."""
    card = run.folder / "rocketmq.json"
    with run.lock("rocketmq"):
        if card.exists():
            known = json.loads(card.read_text())
            servers = Servers(installed(), Path(known["folder"]), Ports(*known["ports"]))
            return Broker(run, servers)
        folder = run.folder / "rocketmq-data"
        ports = Ports.from_base(free_ports(PORTS))
        found = Broker(run, Servers(installed(), folder, ports))
        found.servers.prepare()
        found.start()
        card.write_text(
            json.dumps(
                {
                    "folder": str(folder),
                    "ports": [ports.name_server, ports.grpc, ports.remoting, ports.broker],
                }
            )
        )
        return found
