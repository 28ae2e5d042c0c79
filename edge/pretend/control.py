"""
What a script may ask the pretend provider about itself, under /pretend/, from this machine only.

    GET  /pretend/report         {"submissions", "jobs", "faults": {kind: count}, "deliveries": {…}}
    GET  /pretend/jobs?key=K     every submission of one key, with its deliveries
    POST /pretend/faults/{kind}  count a fault that another process made happen
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from edge.pretend.jobs import Job
from edge.pretend.studio import Studio

_KIND = re.compile(r"[a-z][a-z_]{0,40}")


def routes(studio: Studio) -> list[BaseRoute]:
    """Return the control routes over this studio."""

    async def report(request: Request) -> Response:
        deliveries = Counter(
            str(delivery.answer or delivery.error)
            for job in studio.book.newest_first()
            for delivery in job.deliveries
        )
        return _json(
            {
                "submissions": studio.book.submissions,
                "jobs": studio.book.made,
                "faults": studio.tally.as_dict(),
                "deliveries": dict(sorted(deliveries.items())),
            }
        )

    async def jobs(request: Request) -> Response:
        key = request.query_params.get("key", "")
        return _json(
            {
                "submissions": studio.book.submissions_of(key),
                "jobs": [describe(job) for job in studio.book.with_key(key)],
            }
        )

    async def count(request: Request) -> Response:
        kind = request.path_params["kind"]
        if _KIND.fullmatch(kind) is None:
            return Response(status_code=404)
        studio.tally.add(kind)
        return Response(status_code=204)

    return [
        Route("/pretend/report", _local(report), methods=["GET"]),
        Route("/pretend/jobs", _local(jobs), methods=["GET"]),
        Route("/pretend/faults/{kind}", _local(count), methods=["POST"]),
    ]


def describe(job: Job) -> dict[str, Any]:
    """Return what happened to a job, for a script to judge."""
    return {
        "id": job.id,
        "submission": job.submission,
        "phase": job.state.phase,
        "over": job.over.is_set(),
        "polls": job.polls,
        "cancels": job.cancels,
        "downloads": job.downloads,
        "deliveries": [asdict(delivery) for delivery in job.deliveries],
    }


def _local(
    handler: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    async def guard(request: Request) -> Response:
        host = request.client.host if request.client else ""
        try:
            local = ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = False
        return await handler(request) if local else Response(status_code=404)

    return guard


def _json(body: object) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
