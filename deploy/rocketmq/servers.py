"""
The two servers, as command lines: the name server, and a broker with the gRPC proxy inside.

Everything listens on the loopback only and is kept in one folder. `Ports.from_base` lays the ports
out behind one number.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from relay.rocketmq_topics import Admin, CannotCreate

LOOPBACK = "127.0.0.1"
START_WITHIN = 120.0
PORTS = 8

_JVM = [
    *("java", "-server", "-XX:+UseSerialGC", "-Xms64m", "-XX:MaxDirectMemorySize=256m"),
    *("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true"),
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.98",
]


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the servers listen; the broker also takes the port two below its own and the next."""

    name_server: int
    grpc: int
    remoting: int
    broker: int

    @classmethod
    def from_base(cls, base: int) -> Ports:
        """Return `PORTS` ports in a row from `base` on."""
        return cls(base, base + 1, base + 2, base + 6)

    @property
    def all(self) -> list[int]:
        """Every port that one of the servers listens on."""
        around = (self.broker - 2, self.broker, self.broker + 1)
        return [self.name_server, self.grpc, self.remoting, *around]

    @property
    def endpoints(self) -> str:
        """What AIVEDIO_ROCKETMQ_ENDPOINTS must say."""
        return f"{LOOPBACK}:{self.grpc}"

    @property
    def name_servers(self) -> str:
        """What AIVEDIO_ROCKETMQ_NAME_SERVERS must say."""
        return f"{LOOPBACK}:{self.name_server}"


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of one folder. `built` is what `build.built` returned."""

    built: Path
    folder: Path
    ports: Ports

    def prepare(self) -> None:
        """Make the folder and write the configuration, which may be there from the last time."""
        for name in ("conf", "store"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        ports = self.ports
        (self.folder / "conf" / "namesrv.properties").write_text(
            f"bindAddress={LOOPBACK}\nlistenPort={ports.name_server}\n"
            f"configStorePath={self.folder}/conf/stored.properties\n"
        )
        (self.folder / "conf" / "broker.conf").write_text(
            "brokerClusterName=DefaultCluster\n"
            "brokerName=broker-a\n"
            "brokerId=0\n"
            "brokerRole=ASYNC_MASTER\n"
            "flushDiskType=ASYNC_FLUSH\n"
            f"namesrvAddr={ports.name_servers}\n"
            f"brokerIP1={LOOPBACK}\n"
            f"brokerIP2={LOOPBACK}\n"
            f"bindAddress={LOOPBACK}\n"
            f"listenPort={ports.broker}\n"
            f"haListenPort={ports.broker + 1}\n"
            f"storePathRootDir={self.folder}/store\n"
            f"storePathCommitLog={self.folder}/store/commitlog\n"
            "mappedFileSizeCommitLog=67108864\n"
            "mappedFileSizeConsumeQueue=600000\n"
            # Topics are made by `aivedio topics create`: with the right type, or not at all.
            "autoCreateTopicEnable=false\n"
            "autoCreateSubscriptionGroup=false\n"
            "traceTopicEnable=false\n"
            # A small machine that does other things too may be slow for a moment.
            "waitTimeMillsInSendQueue=5000\n"
            "osPageCacheBusyTimeOutMills=10000\n"
        )
        (self.folder / "conf" / "rmq-proxy.json").write_text(
            json.dumps(
                {
                    "rocketMQClusterName": "DefaultCluster",
                    "proxyMode": "LOCAL",
                    "namesrvAddr": ports.name_servers,
                    "grpcServerPort": ports.grpc,
                    "remotingListenPort": ports.remoting,
                    "grpcShutdownTimeSeconds": 1,
                    # Tests of redelivery and of waiting should not take the usual 10 and 5 s.
                    "minInvisibleTimeMillsForRecv": 1000,
                    "grpcClientConsumerMinLongPollingTimeoutMillis": 200,
                },
                indent=2,
            )
        )

    def name_server(self) -> list[str]:
        """Return the command line of the name server."""
        config = self.folder / "conf" / "namesrv.properties"
        return self._java("128m", "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", str(config))

    def broker(self) -> list[str]:
        """Return the command line of the broker with the proxy."""
        conf = self.folder / "conf"
        return self._java(
            *("512m", "org.apache.rocketmq.proxy.ProxyStartup", "-pm", "local"),
            *("-n", self.ports.name_servers),
            *("-bc", str(conf / "broker.conf"), "-pc", str(conf / "rmq-proxy.json")),
        )

    def _java(self, heap: str, main: str, *arguments: str) -> list[str]:
        return [
            *(*_JVM, f"-Xmx{heap}", f"-javaagent:{self.built}/loopback-only.jar"),
            *(f"-Duser.home={self.folder}", f"-Drocketmq.home.dir={self.folder}"),
            *(f"-DRMQ_PROXY_HOME={self.folder}", "-cp", f"{self.built}/lib/*", main, *arguments),
        ]

    def await_name_server(self, alive: Callable[[], bool]) -> bool:
        """Return whether the name server listens, before it ends or the time is over."""
        return _await(lambda: listens(self.ports.name_server), alive)

    def await_broker(self, alive: Callable[[], bool]) -> bool:
        """Return whether the broker takes messages, before it ends or the time is over."""
        return _await(lambda: listens(self.ports.grpc) and self._is_known(), alive)

    def _is_known(self) -> bool:
        try:
            return bool(Admin([self.ports.name_servers]).brokers())
        except CannotCreate:
            return False


def listens(port: int) -> bool:
    """Tell whether somebody takes connections on a port of the loopback."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0):
            return True
    except OSError:
        return False


def _await(fact: Callable[[], bool], alive: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + START_WITHIN
    while time.monotonic() < deadline and alive():
        if fact():
            return True
        time.sleep(0.05)
    return False
