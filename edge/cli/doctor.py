"""`aivedio doctor`: the findings of `edge.operate.doctor`, laid out for a terminal."""

from __future__ import annotations

import asyncio
import sys

from edge.cli.processes import database_url
from edge.cli.settings import Settings
from edge.operate.doctor import Finding, Installation, examine

MARKS = {"ok": "✓", "warn": "!", "wrong": "✗"}


def show(settings: Settings) -> int:
    """Print every finding and return 1 if something is wrong, else 0."""
    return asyncio.run(_show(_installation(settings)))


async def _show(installation: Installation) -> int:
    found = {"ok": 0, "warn": 0, "wrong": 0}
    async for finding in examine(installation):
        found[finding.state] += 1
        sys.stdout.write(line(finding) + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{found['ok']} well, {found['warn']} to look at, {found['wrong']} wrong\n")
    return 1 if found["wrong"] else 0


def line(finding: Finding) -> str:
    """Return a finding as a line, its advice on a second one."""
    text = f"{MARKS[finding.state]} {finding.subject}: {finding.detail}"
    return text if finding.advice is None else f"{text}\n    {finding.advice}"


def _installation(settings: Settings) -> Installation:
    redis = settings.redis_url
    return Installation(
        database_url=database_url(settings),
        redis_url=redis.get_secret_value() if redis else None,
        bus_endpoints=tuple(settings.rocketmq_endpoints),
        public_url=settings.public_url,
        callback_url=settings.callback_url,
        most_streams=settings.most_streams,
        proxy_idle_seconds=settings.proxy_idle_seconds,
        encryption_at_rest=settings.encryption_at_rest,
        local=settings.local,
    )
