"""Serves the page with jobs that move: `python -m tests.py.browser.demo_jobs [port]`."""

from __future__ import annotations

import asyncio
import random
import sys
import uuid

from tests.py.browser.fake_gateway import PROJECT, FakeGateway

PROMPTS = (
    "A red fox trots through fresh snow at dawn, breath steaming, slow dolly shot",
    "Neon-lit ramen stall in the rain, steam curling past the camera, anamorphic bokeh",
    "Paper boats drift down a flooded library aisle, warm lamplight",
    "Timelapse of frost growing over a window pane, macro",
    "An astronaut waters tomatoes in a greenhouse on Mars",
)
MEDIA = ("backhauling", "verifying", "transcoding", "publishing")


async def run_job(gateway: FakeGateway, task: str, pace: float) -> None:
    """Take one job through its life; one in seven fails."""
    chance = random.random()

    async def step(**fields: object) -> bool:
        await asyncio.sleep(pace * random.uniform(0.5, 1.5))
        row = gateway.tasks[task]
        if row["status"] == "cancel_requested":
            gateway.change(task, status="canceled")
        if row["status"] in ("canceled", "failed"):
            return False
        gateway.change(task, **fields)
        return True

    for status in ("submitting", "submitted", "queued"):
        if not await step(status=status):
            return
    for progress in range(0, 100, 7):
        if not await step(status="running", progress=progress):
            return
        if chance < 0.14 and progress > 40:
            message = "The provider could not generate this video."
            trace = f"trc_{uuid.uuid4().hex[:16]}"
            error = {"code": "provider_failed", "message": message, "trace_id": trace}
            await step(status="failed", error=error)
            return
    await step(status="provider_succeeded")
    for stage in MEDIA:
        for progress in range(0, 101, 25):
            if not await step(status="processing_media", stage=stage, progress=progress):
                return
    await step(status="ready", asset_id=f"ast_{uuid.uuid4().hex[:20]}", progress=100)


async def main(port: int, count: int, pace: float) -> None:
    """Serve until interrupted."""
    gateway = FakeGateway(ping_every=25)
    running: set[asyncio.Task[None]] = set()

    def begin(task: str) -> None:
        running.add(asyncio.ensure_future(run_job(gateway, task, pace)))

    gateway.created = begin
    async with gateway.serve(port):
        sys.stdout.write(f"{gateway.origin}/?project={PROJECT}\n")
        sys.stdout.flush()
        for number in range(count):
            begin(gateway.add(PROMPTS[number % len(PROMPTS)]))
            await asyncio.sleep(pace * 2)
        await asyncio.Event().wait()


if __name__ == "__main__":
    given = [float(argument) for argument in sys.argv[1:]] + [0.0, 12.0, 0.6][len(sys.argv) - 1 :]
    asyncio.run(main(int(given[0]), int(given[1]), given[2]))
