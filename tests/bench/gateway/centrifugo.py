"""
Centrifugo as a reference, where Go is present to build it: the same Redis, the same clients.

It is built once, from the Go module proxy, into a folder outside of the tree.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.bench.gateway.world import BROWSER
from tests.bench.harness import say
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually

MODULE = "github.com/centrifugal/centrifugo/v6@v6.9.1"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "aivedio-bench"


def program() -> Path | None:
    """Return Centrifugo's program, built if need be; None where it cannot be had."""
    built = CACHE / "bin" / "centrifugo"
    if built.exists():
        return built
    go = shutil.which("go")
    if go is None:
        say("  no Go here: no comparison with Centrifugo")
        return None
    say("  building Centrifugo, once …")
    environment = {
        **os.environ,
        "GOPATH": str(CACHE / "go"),
        "GOCACHE": str(CACHE / "build"),
        "GOBIN": str(CACHE / "bin"),
        "GOFLAGS": "-modcacherw",
    }
    done = subprocess.run(
        [go, "install", MODULE], env=environment, capture_output=True, text=True, timeout=1200
    )
    if done.returncode:
        say(f"  Centrifugo cannot be built: {done.stderr.strip()[-200:]}")
        return None
    return built


class Centrifugo:
    """A running server, with one channel for each project."""

    def __init__(self, port: int) -> None:
        self.port = port

    def requests(self, channel: str) -> list[tuple[int, bytes]]:
        """Return a request for the channel's stream."""
        connect = quote(json.dumps({"subs": {channel: {}}}))
        path = f"/connection/uni_sse?cf_connect={connect}"
        return [(0, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{BROWSER}\r\n".encode())]

    def publish(self, channel: str, payloads: Sequence[dict[str, object]]) -> None:
        """Publish the payloads in one request, each stamped with the moment."""
        commands = [
            {"publish": {"channel": channel, "data": {**payload, "t": time.time_ns()}}}
            for payload in payloads
        ]
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/batch",
            json.dumps({"commands": commands}, separators=(",", ":")).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            replies = json.load(answer)["replies"]
        if any("error" in reply for reply in replies):
            raise RuntimeError(f"Centrifugo refuses: {replies[0]}")


@contextmanager
def centrifugo(binary: Path, redis_url: str) -> Iterator[Centrifugo]:
    """Run it on Redis for the length of the block."""
    port = free_port()
    configuration = {
        "http_server": {"address": "127.0.0.1", "port": str(port)},
        "log": {"level": "error"},
        "client": {"insecure": True, "connection_limit": 0},
        "http_api": {"insecure": True},
        "uni_sse": {"enabled": True},
        "health": {"enabled": True},
        "engine": {"type": "redis", "redis": {"address": redis_url}},
    }
    with tempfile.TemporaryDirectory(prefix="av-centrifugo-") as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(configuration))
        process = subprocess.Popen([binary, "-c", path], stdout=subprocess.DEVNULL)
        try:
            eventually(lambda: _healthy(process, port), 30.0, "Centrifugo is up")
            yield Centrifugo(port)
        finally:
            process.kill()
            process.wait()


def _healthy(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "Centrifugo ended"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
