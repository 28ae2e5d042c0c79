"""
A real RocketMQ on one machine: a name server, and a broker with the gRPC proxy inside.

    python -m deploy.rocketmq fetch                   get the jars, once
    python -m deploy.rocketmq run                     run both until Ctrl-C
    python -m deploy.rocketmq run -- aivedio up       run both as long as a command, which finds
                                                      where they are in its environment

Nothing but this machine can reach them, and they stop with this process however it ends. Who runs
it a second time on the same folder uses the servers that are there, and leaves them running.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from deploy.rocketmq.build import CannotBuild, built, cache
from deploy.rocketmq.servers import PORTS, Ports, Servers, listens
from edge import orphan

# A broker takes half a minute to end by itself; killed, it loses nothing that it acknowledged.
STOP_WITHIN = 2.0


class CannotRun(Exception):
    """The servers do not run; the text says why."""


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says and return the exit status."""
    options = _options(arguments)
    try:
        place = built(_say)
        if options.what == "fetch":
            return 0
        ports = Ports.from_base(options.base_port)
        return _run(Servers(place, options.folder.resolve(), ports), options)
    except (CannotBuild, CannotRun) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.rocketmq",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("fetch", "run"))
    parser.add_argument(
        "--folder", type=Path, default=cache() / "data", help="where messages and logs are kept"
    )
    parser.add_argument(
        "--base-port", type=int, default=9876, help=f"the first of {PORTS} ports in a row"
    )
    parser.add_argument(
        "--until-input-ends",
        action="store_true",
        help="stop when standard input, a pipe that the owner holds, is closed",
    )
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:end])
    options.command = list(arguments[end + 1 :])
    return options


def _run(servers: Servers, options: argparse.Namespace) -> int:
    servers.folder.mkdir(parents=True, exist_ok=True)
    if options.until_input_ends:
        threading.Thread(target=_follow_owner, daemon=True).start()
    with (servers.folder / "lock").open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _use(servers, options.command)
        return _own(servers, options.command)


def _use(servers: Servers, command: Sequence[str]) -> int:
    """Use the servers that another process runs in this folder."""
    known = (servers.folder / "ports").read_text().split()
    there = Servers(servers.built, servers.folder, Ports(*map(int, known)))
    if not there.await_broker(lambda: True):
        raise CannotRun(f"The RocketMQ of {servers.folder} is being started and never answers.")
    _say(f"RocketMQ runs already: {there.ports.endpoints}")
    return _beside(there, command) if command else 0


def _own(servers: Servers, command: Sequence[str]) -> int:
    """Run the servers, and stop them at the end."""
    taken = [port for port in servers.ports.all if listens(port)]
    if taken:
        raise CannotRun(f"Port {taken[0]} is in use: choose others with --base-port.")
    ports = servers.ports
    (servers.folder / "ports").write_text(
        f"{ports.name_server} {ports.grpc} {ports.remoting} {ports.broker}"
    )
    servers.prepare()
    running: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _say("Starting RocketMQ")
        name_server = _start(servers, "name-server", servers.name_server(), running)
        if not servers.await_name_server(lambda: name_server.poll() is None):
            raise CannotRun(_last_words(servers, "name-server"))
        broker = _start(servers, "broker", servers.broker(), running)
        if not servers.await_broker(lambda: broker.poll() is None):
            raise CannotRun(_last_words(servers, "broker"))
        _say(
            f"RocketMQ runs:\n  AIVEDIO_ROCKETMQ_ENDPOINTS={ports.endpoints}\n"
            f"  AIVEDIO_ROCKETMQ_NAME_SERVERS={ports.name_servers}"
        )
        if command:
            return _beside(servers, command)
        while all(server.poll() is None for server in running):
            time.sleep(0.5)
        raise CannotRun("A server of RocketMQ has ended.")
    finally:
        _stop(running)


def _start(
    servers: Servers, name: str, command: Sequence[str], running: list[subprocess.Popen[bytes]]
) -> subprocess.Popen[bytes]:
    with (servers.folder / f"{name}.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=servers.folder,
            start_new_session=True,
            preexec_fn=orphan.dies_with(os.getpid(), signal.SIGKILL),
        )
    running.append(server)
    return server


def _stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for server in reversed(running):
        server.terminate()
        try:
            server.wait(STOP_WITHIN)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            server.kill()
            server.wait()


def _beside(servers: Servers, command: Sequence[str]) -> int:
    """Run a command that finds the servers in its environment; return its exit status."""
    environment = {
        **os.environ,
        "AIVEDIO_ROCKETMQ_ENDPOINTS": servers.ports.endpoints,
        "AIVEDIO_ROCKETMQ_NAME_SERVERS": servers.ports.name_servers,
    }
    with subprocess.Popen(
        command, env=environment, preexec_fn=orphan.dies_with(os.getpid(), signal.SIGTERM)
    ) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                # Ctrl-C reaches the command as well; a SIGTERM of ours does not.
                process.terminate()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _follow_owner() -> None:
    orphan.wait_for_close(0)
    os.kill(os.getpid(), signal.SIGTERM)


def _last_words(servers: Servers, name: str) -> str:
    log = servers.folder / f"{name}.log"
    lines = log.read_text(errors="replace").splitlines()[-15:]
    return "\n".join([f"The {name} of RocketMQ does not run; {log} ends with:", *lines])


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
