"""The examples of deploy/ name what exists, start every process, and give each its time to stop."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from edge.cli.processes import PROCESSES
from edge.cli.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "docker" / "compose.yaml"
KUBERNETES = DEPLOY / "kubernetes" / "aivedio.yaml"
UNIT = DEPLOY / "systemd" / "aivedio@.service"

REAL = {name: process for name, process in PROCESSES.items() if not process.hidden}
# Stopping takes what it winds up, and draining where there are streams.
SLACK_S = 10.0


def compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return services


def deployments() -> dict[str, Any]:
    documents = yaml.safe_load_all(KUBERNETES.read_text())
    return {
        document["spec"]["template"]["spec"]["containers"][0]["name"]: document["spec"]
        for document in documents
        if document["kind"] == "Deployment"
    }


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(DEPLOY.rglob("*")) if path.is_file()],
    ids=lambda path: path.name,
)
def test_variables_are_settings(path: Path) -> None:
    known = {f"AIVEDIO_{field.upper()}" for field in Settings.model_fields}
    # What a shell script may be told beside.
    known |= {"AIVEDIO_CACHE"}
    if (
        path.suffix in (".yaml", ".yml", ".service", ".example", ".conf")
        or path.name == "Dockerfile"
    ):
        named = set(re.findall(r"\bAIVEDIO_[A-Z_]+\b", path.read_text()))
        assert named <= known


def test_every_process_is_started() -> None:
    commands = {service.get("command", [None])[0] for service in compose().values()}
    assert commands >= {*REAL, "migrate"}
    assert deployments().keys() == REAL.keys()
    enabled = re.search(r"aivedio@\{([^}]*)\}", (UNIT.parent / "aivedio.target").read_text())
    assert enabled is not None
    assert set(enabled[1].split(",")) == REAL.keys()


def test_each_has_its_time_to_stop() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(UNIT)
    longest = max(process.winds_up for process in REAL.values()) + SLACK_S
    assert float(unit["Service"]["TimeoutStopSec"].removesuffix("s")) >= longest
    for name, spec in deployments().items():
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        drain = next(
            (
                float(variable["value"])
                for variable in container.get("env", [])
                if variable["name"] == "AIVEDIO_DRAIN_SECONDS"
            ),
            0.0,
        )
        assert pod["terminationGracePeriodSeconds"] >= REAL[name].winds_up + 2 * drain + SLACK_S
    for name, service in compose().items():
        if name in REAL:
            assert float(service["stop_grace_period"].removesuffix("s")) >= longest


def test_pods_are_probed_and_may_do_nothing_else() -> None:
    for spec in deployments().values():
        pod = spec["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        (container,) = pod["containers"]
        assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "admin"}
        assert container["livenessProbe"]["httpGet"] == {"path": "/live", "port": "admin"}
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert (
            spec["selector"]["matchLabels"].items()
            <= spec["template"]["metadata"]["labels"].items()
        )


def test_a_unit_s_name_says_which_process_it_is() -> None:
    """`aivedio@gateway-2` is a gateway; systemd halves what is doubled before a shell sees it."""
    found = re.search(r"exec \S+ (.*)' %i", UNIT.read_text())
    assert found is not None
    word = found[1].replace("$$", "$").replace("%%", "%")
    for name, process in (("gateway", "gateway"), ("gateway-2", "gateway"), ("relay-10", "relay")):
        said = subprocess.run(
            ["/bin/sh", "-c", f"echo {word}", name], capture_output=True, text=True, check=True
        )
        assert said.stdout.strip() == process
