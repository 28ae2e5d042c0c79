"""
The pretend media plane: it claims operations, works on them and reports, as a real one would.

    backhaul   fetch the provider's file, for real, before the provider deletes it
    verify     what arrived is as long as promised and has the promised checksum
    transcode  takes a while and says how far it is
    publish    gives the asset an id, the same one however often it is asked

It keeps nothing: what one operation learned is in its result, which the next one is given. A
report extends the lease; a report that comes back stale means that somebody else has the
operation now, and the work is dropped. What may go wrong on purpose arrives with the file, in a
header of the pretend provider.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from edge import database, errors, logs
from edge.backoff import Backoff, pause
from edge.pretend.faults import MEDIA_HEADER, Fault

logger = logs.get(__name__)

IDLE_S = 0.15
LONGEST_PAUSE_S = 5.0
MAX_BYTES = 64 * 1024 * 1024
STEPS = 4
TIMEOUT = httpx.Timeout(10.0)


@dataclass(frozen=True, slots=True)
class MediaTask:
    """Mirror of the SQL type aivedio.media_task, as far as it is needed here."""

    operation_id: UUID
    lease_token: int
    task_id: UUID
    attempt_id: UUID
    operation_type: str
    tries: int
    sources: list[dict[str, Any]] | None
    previous: dict[str, Any] | None
    trace_id: str | None


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a report."""

    verdict: str


class Failed(Exception):
    """An operation failed: its class, and whether trying again could help."""

    def __init__(self, error_class: str, *, retry: bool) -> None:
        super().__init__(error_class)
        self.error_class = error_class
        self.retry = retry


class Dropped(Exception):
    """The operation is no longer ours, or it is abandoned on purpose."""


async def run(
    *,
    database_url: str,
    worker: str,
    stopping: asyncio.Event,
    ready: Callable[[bool], None],
    concurrency: int = 4,
    step_s: float = 0.2,
) -> None:
    """
    Claim and do media operations until `stopping` is set.

    `step_s` is the time between two progress reports of an operation. Operations that are under
    way when it stops are left to their lease.
    """
    async with (
        database.connect(database_url, role="aivedio_consumer", max_size=concurrency) as db,
        httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client,
    ):
        plane = MediaPlane(db, client, worker, concurrency, step_s)
        try:
            await plane.work(stopping, ready)
        finally:
            await plane.close()


class MediaPlane:
    """One worker process of the media plane; at most `concurrency` operations at once."""

    def __init__(
        self,
        db: database.Database,
        client: httpx.AsyncClient,
        worker: str,
        concurrency: int,
        step_s: float,
    ) -> None:
        self._db = db
        self._client = client
        self._worker = worker
        self._concurrency = concurrency
        self._step_s = step_s
        self._working: set[asyncio.Task[None]] = set()

    async def work(self, stopping: asyncio.Event, ready: Callable[[bool], None]) -> None:
        """Claim as many operations as there are free hands, again and again."""
        backoff = Backoff(first=IDLE_S, cap=LONGEST_PAUSE_S)
        while not stopping.is_set():
            free = self._concurrency - len(self._working)
            claimed: list[MediaTask] = []
            try:
                if free > 0:
                    claimed = await self._claim(free)
                ready(True)
                backoff.reset()
                wait = IDLE_S * random.uniform(0.8, 1.2)
            except errors.Unavailable as error:
                ready(False)
                wait = backoff.next()
                logger.warning("media claim failed", error=type(error).__name__)
            for task in claimed:
                self._begin(task)
            if not claimed:
                await pause(wait, stopping)

    async def close(self) -> None:
        """Drop what is under way."""
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _claim(self, limit: int) -> list[MediaTask]:
        return await self._db.rows(
            MediaTask, "claim_media", p_worker=self._worker, p_limit=min(limit, self._concurrency)
        )

    def _begin(self, task: MediaTask) -> None:
        working = asyncio.create_task(self._do(task), name=f"media {task.operation_id}")
        self._working.add(working)
        working.add_done_callback(self._working.discard)

    async def _do(self, task: MediaTask) -> None:
        with logs.tracing(task.trace_id):
            try:
                await self._report(task, {"progress": 0})
                result = await _OPERATIONS[task.operation_type](self, task)
                await self._report(task, {"done": result})
            except Failed as failed:
                with contextlib.suppress(Dropped, errors.EdgeError):
                    await self._report(task, {"failed": failed.error_class, "retry": failed.retry})
                logger.warning(
                    "media operation failed",
                    operation=task.operation_type,
                    error_class=failed.error_class,
                    retry=failed.retry,
                )
            except Dropped:
                logger.info("media operation dropped", operation=task.operation_type)
            except errors.EdgeError as error:
                # The lease runs out and somebody does it again.
                logger.warning("media report failed", error=type(error).__name__)

    async def _report(self, task: MediaTask, report: dict[str, Any]) -> None:
        answer = await self._db.one(
            Applied,
            "report_media",
            p_operation=task.operation_id,
            p_token=task.lease_token,
            p_report=report,
        )
        if answer.verdict in ("stale_lease", "after_terminal"):
            raise Dropped

    async def _backhaul(self, task: MediaTask) -> dict[str, Any]:
        if not task.sources:
            raise Failed("no_source", retry=False)
        url = str(task.sources[0]["url"])
        digest, size = hashlib.sha256(), 0
        try:
            async with self._client.stream("GET", url) as response:
                if response.status_code in (403, 404, 410):
                    raise Failed("source_gone", retry=False)
                if response.status_code != 200:
                    raise Failed("source_unavailable", retry=True)
                async for chunk in response.aiter_bytes():
                    digest.update(chunk)
                    size += len(chunk)
                    if size > MAX_BYTES:
                        raise Failed("source_too_large", retry=False)
        except (httpx.HTTPError, httpx.InvalidURL):
            raise Failed("source_unavailable", retry=True) from None
        promised = response.headers
        return {
            "bytes": size,
            "sha256": digest.hexdigest(),
            "promised_bytes": promised.get("content-length"),
            "promised_sha256": promised.get("etag", "").strip('"') or None,
            **_script(url, promised.get(MEDIA_HEADER, "")),
        }

    async def _verify(self, task: MediaTask) -> dict[str, Any]:
        seen = task.previous or {}
        await asyncio.sleep(self._step_s)
        if str(seen.get("bytes")) != seen.get("promised_bytes"):
            raise Failed("source_incomplete", retry=False)
        if seen.get("sha256") != seen.get("promised_sha256"):
            raise Failed("source_corrupt", retry=False)
        return {"sha256": seen["sha256"], **_carried(seen)}

    async def _transcode(self, task: MediaTask) -> dict[str, Any]:
        for step in range(1, STEPS + 1):
            await asyncio.sleep(self._step_s)
            await self._report(task, {"progress": 100 * step // (STEPS + 1)})
            if step == STEPS // 2:
                await self._misbehave(task)
        return {"renditions": ["1080p", "540p"], **_carried(task.previous or {})}

    async def _publish(self, task: MediaTask) -> dict[str, Any]:
        await asyncio.sleep(self._step_s)
        name = hashlib.sha256(f"{task.task_id}/{task.attempt_id}".encode()).hexdigest()
        return {"asset_id": f"ast_{name[:24]}"}

    async def _misbehave(self, task: MediaTask) -> None:
        script = (task.previous or {}).get("pretend") or {}
        for fault in script.get("faults", ()):
            if fault == Fault.MEDIA_FAILED:
                await self._count(script, fault)
                raise Failed("transcode_failed", retry=False)
            if task.tries > 1:
                continue
            await self._count(script, fault)
            if fault == Fault.MEDIA_CRASH:
                raise Dropped
            if fault == Fault.MEDIA_FLAKY:
                raise Failed("transcode_failed", retry=True)

    async def _count(self, script: dict[str, Any], fault: str) -> None:
        with contextlib.suppress(httpx.HTTPError):
            await self._client.post(f"{script['origin']}/pretend/faults/{fault}")


_OPERATIONS: dict[str, Callable[[MediaPlane, MediaTask], Awaitable[dict[str, Any]]]] = {
    "backhaul": MediaPlane._backhaul,
    "verify": MediaPlane._verify,
    "transcode": MediaPlane._transcode,
    "publish": MediaPlane._publish,
}


def _script(url: str, header: str) -> dict[str, Any]:
    faults = [name for name in header.split(",") if name]
    if not faults:
        return {}
    parts = urlsplit(url)
    return {"pretend": {"faults": faults, "origin": f"{parts.scheme}://{parts.netloc}"}}


def _carried(seen: dict[str, Any]) -> dict[str, Any]:
    return {"pretend": seen["pretend"]} if "pretend" in seen else {}
