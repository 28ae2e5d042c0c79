"""Settings come from AIVEDIO_ variables, and what is wrong with them is said on one screen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from edge.cli import settings


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(settings.PREFIX):
            monkeypatch.delenv(name)


def test_nothing_set_is_fine_until_something_is_needed() -> None:
    known = settings.load()
    assert known.database_url is None
    with pytest.raises(settings.BadSettings) as refused:
        settings.required(known, "database_url", "redis_url", "gateway_listen")
    assert "AIVEDIO_DATABASE_URL" in str(refused.value)
    assert "AIVEDIO_REDIS_URL" in str(refused.value)
    assert "GATEWAY_LISTEN" not in str(refused.value)


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIVEDIO_REDIS_URL", "")
    assert settings.load().redis_url is None


def test_trusted_proxies_are_networks_separated_by_commas_or_spaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIVEDIO_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.7 ::1")
    assert [str(network) for network in settings.load().proxies] == [
        "10.0.0.0/8",
        "192.0.2.7/32",
        "::1/128",
    ]


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("DATABASE_URL", "mysql://root:hunter2@db/x", "postgresql://"),
        ("REDIS_URL", "http://:hunter2@cache", "redis://"),
        ("PUBLIC_URL", "aivedio.example.com", "https://"),
        ("PUBLIC_URL", "https://a.example/?q=hunter2", "no ?query"),
        ("WEBHOOK_LISTEN", "8081", "host:port"),
        ("GATEWAY_LISTEN", "::1:99999", "host:port"),
        ("ADMIN_PORT", "70000", "65535"),
        ("ROCKETMQ_ENDPOINTS", "127.0.0.1", "must be host:port"),
        ("ROCKETMQ_NAME_SERVERS", "http://names:9876", "must be host:port"),
        ("ROCKETMQ_PREFIX", "a.b", "pattern"),
        ("JWT_SECRET", "hunter2", "32"),
        ("TRUSTED_PROXIES", "everybody", "network"),
        ("LOG_LEVEL", "loud", "'info'"),
        ("DRAIN_SECONDS", "-1", "0"),
    ],
)
def test_a_bad_value_is_named_explained_and_never_shown(
    name: str, value: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AIVEDIO_{name}", value)
    with pytest.raises(settings.BadSettings) as refused:
        settings.load()
    assert f"AIVEDIO_{name}" in str(refused.value)
    assert hint in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_the_command_line_ends_with_status_2_and_no_traceback() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "edge.cli.app", "migrate"],
        env={**os.environ, "AIVEDIO_DATABASE_URL": "x", "AIVEDIO_ADMIN_PORT": "y"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    assert "AIVEDIO_DATABASE_URL" in answer.stderr
    assert "AIVEDIO_ADMIN_PORT" in answer.stderr
    assert len(answer.stderr.splitlines()) < 24


def test_rocketmq_is_a_cluster_once_its_endpoints_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settings.load().rocketmq is None
    monkeypatch.setenv("AIVEDIO_ROCKETMQ_ENDPOINTS", "one:8081; [::1]:8081, two:8081")
    monkeypatch.setenv("AIVEDIO_ROCKETMQ_SECRET_KEY", "hunter2")
    rocketmq = settings.load().rocketmq
    assert rocketmq is not None
    assert list(rocketmq.endpoints) == ["one:8081", "[::1]:8081", "two:8081"]
    assert rocketmq.topic == "aivedio_events"
    assert rocketmq.secret_key == "hunter2"
    assert "hunter2" not in repr(rocketmq)
