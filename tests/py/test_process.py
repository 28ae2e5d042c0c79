"""A process starts, says that it is ready, and stops when told, or when its owner dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.py.support.waiting import eventually

PROGRAM = """
import asyncio, sys, time
from edge import logs, process

async def main(stopping, ready):
    ready(True)
    {body}

sys.exit(process.run("sample", main, admin_port=int(sys.argv[1]), stop_within=0.3))
"""

WAITS = "await stopping.wait()"


class Sample:
    """A process under test and what it has logged."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, port: int) -> None:
        self.process = process
        self.port = port
        self._log = log

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def events(self) -> list[object]:
        return [line["event"] for line in self.lines()]

    def is_ready(self) -> bool:
        return "process ready" in self.events()

    def ends(self, timeout: float = 10.0) -> int:
        return self.process.wait(timeout)


Start = Callable[..., Sample]


@pytest.fixture
def start(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Start]:
    started: list[Sample] = []

    def sample(body: str = WAITS, owner: int | None = None, ready: int | None = None) -> Sample:
        environment = dict(os.environ)
        passed = []
        for name, descriptor in (("OWNER", owner), ("READY", ready)):
            if descriptor is not None:
                environment[f"AIVEDIO_{name}_FD"] = str(descriptor)
                passed.append(descriptor)
        log, port = tmp_path / f"{len(started)}.log", free_port()
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM.format(body=body), str(port)],
                env=environment,
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                stderr=stderr,
            )
        started.append(Sample(process, log, port))
        return started[-1]

    yield sample
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        for descriptor in (reading, writing):
            try:
                os.close(descriptor)
            except OSError:
                pass  # the test closed it


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(number: signal.Signals, start: Start) -> None:
    sample = start()
    eventually(sample.is_ready)
    sample.process.send_signal(number)
    assert sample.ends() == 0
    assert sample.events()[-1] == "process stopped"


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    sample = start("await asyncio.sleep(60)")
    eventually(sample.is_ready)
    sample.process.send_signal(signal.SIGTERM)
    eventually(lambda: "stopping" in sample.events())
    sample.process.send_signal(signal.SIGTERM)
    assert sample.ends() == 128 + signal.SIGTERM


def test_work_that_does_not_stop_is_cancelled(start: Start) -> None:
    sample = start("await asyncio.sleep(60)")
    eventually(sample.is_ready)
    sample.process.send_signal(signal.SIGTERM)
    assert sample.ends() == 1
    assert "stopping took too long" in sample.events()


def test_work_that_resists_cancellation_is_abandoned(start: Start) -> None:
    sample = start(
        "\n    while True:\n        try: await asyncio.sleep(60)\n"
        "        except asyncio.CancelledError: pass"
    )
    eventually(sample.is_ready)
    sample.process.send_signal(signal.SIGTERM)
    assert sample.ends() == 1
    assert "process abandoned its work" in sample.events()


def test_a_failure_is_logged_and_makes_the_status_1(start: Start) -> None:
    sample = start("raise KeyError('lost')")
    assert sample.ends() == 1
    (line,) = (line for line in sample.lines() if line["event"] == "process failed")
    assert "KeyError" in str(line["exception"])
    assert line["process"] == "sample"


def test_a_process_that_returns_unasked_has_failed(start: Start) -> None:
    sample = start("pass")
    assert sample.ends() == 1
    assert sample.events()[-1] == "process ended unasked"


def test_it_stops_when_its_owner_is_gone(start: Start) -> None:
    with pipe() as (reading, writing):
        sample = start(owner=reading)
        eventually(sample.is_ready)
        os.close(writing)
        assert sample.ends(5) == 0


def test_even_a_stuck_event_loop_does_not_outlive_the_owner(start: Start) -> None:
    with pipe() as (reading, writing):
        sample = start("time.sleep(60)", owner=reading)
        eventually(sample.is_ready)
        os.close(writing)
        assert sample.ends(5) == 1


def test_whoever_started_it_reads_one_line_when_it_is_ready(start: Start) -> None:
    with pipe() as (reading, writing):
        sample = start(ready=writing)
        os.close(writing)
        assert os.read(reading, 100) == b"ready\n"
        assert os.read(reading, 100) == b""  # closed, so that nobody waits for more
        sample.process.terminate()
        assert sample.ends() == 0


def test_a_starter_that_went_away_does_no_harm(start: Start) -> None:
    with pipe() as (reading, writing):
        sample = start(ready=writing)
        os.close(reading)
        os.close(writing)
        eventually(sample.is_ready)
        sample.process.terminate()
        assert sample.ends() == 0


def test_the_admin_port_tells_life_readiness_and_metrics(start: Start) -> None:
    sample = start("ready(False); await stopping.wait(); ready(True); await asyncio.sleep(0.2)")
    eventually(lambda: "process not ready" in sample.events())
    with httpx.Client(base_url=f"http://127.0.0.1:{sample.port}") as client:
        assert client.get("/live").status_code == 200
        assert client.get("/ready").status_code == 503
        assert client.get("/nothing").status_code == 404
        assert client.post("/live").status_code == 405
        metrics = client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert 'aivedio_process_ready{process="sample"} 0.0' in metrics.text


def test_the_admin_port_says_ready(start: Start) -> None:
    sample = start()
    eventually(sample.is_ready)
    assert httpx.get(f"http://127.0.0.1:{sample.port}/ready?probe=1").status_code == 200


def test_a_trace_id_is_in_every_line_of_its_block(start: Start) -> None:
    sample = start(
        "log = logs.get('x')\n"
        "    with logs.tracing('t-1'): log.info('inside', size=3)\n"
        "    log.info('outside')\n"
        "    await stopping.wait()"
    )
    eventually(lambda: "outside" in sample.events())
    inside, outside = sample.lines()[-2:]
    assert (inside["trace_id"], inside["size"], inside["level"]) == ("t-1", 3, "info")
    assert "trace_id" not in outside
