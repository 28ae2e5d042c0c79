"""Official SDKs drive the dialects that they know, so that none of these is only our own idea."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import fal_client
import fal_client.client
import mux_python
import pytest
from lumaai import AsyncLumaAI
from lumaai.types import Generation
from openai import AsyncOpenAI, InvalidWebhookSignatureError
from runwayml import AsyncRunwayML, NotFoundError

from tests.py.pretend.conftest import SECRET, TOKEN, Receiver, running, until

QUICK = {"queue_s": 0.05, "run_s": 0.2, "steps": 4}


def prompt(**plan: Any) -> str:
    return f"a red kite pretend:{json.dumps({**QUICK, **plan})}"


async def ends(ask: Callable[[], Awaitable[Any]], over: Callable[[Any], bool]) -> Any:
    """Ask until the answer tells of the end, and return it."""
    answer: Any = None

    async def ended() -> bool:
        nonlocal answer
        answer = await ask()
        return over(answer)

    await until(ended)
    return answer


async def test_runway() -> None:
    async with (
        running(dialect="runway") as provider,
        AsyncRunwayML(api_key=TOKEN, base_url=provider.url, max_retries=0) as sdk,
    ):

        async def create(**plan: Any) -> Any:
            return await sdk.text_to_video.create(
                model="veo3.1", prompt_text=prompt(**plan), ratio="1280:720"
            )

        made = await create()
        first = await sdk.tasks.retrieve(made.id)
        assert first.status in ("PENDING", "RUNNING")
        done = await ends(
            lambda: sdk.tasks.retrieve(made.id), lambda task: bool(task.status == "SUCCEEDED")
        )
        assert done.output == [f"{provider.url}/files/{made.id}.mp4"]

        failing = await create(outcome="failed", error="no")
        failed = await ends(
            lambda: sdk.tasks.retrieve(failing.id), lambda task: bool(task.status == "FAILED")
        )
        assert failed.failure == "no"

        long = await create(outcome="canceled", queue_s=0)
        await ends(lambda: sdk.tasks.retrieve(long.id), lambda task: task.status == "RUNNING")
        await sdk.tasks.delete(long.id)
        with pytest.raises(NotFoundError):
            await sdk.tasks.retrieve(long.id)


async def test_luma(receiver: Receiver) -> None:
    async with (
        running(dialect="luma") as provider,
        AsyncLumaAI(
            auth_token=TOKEN, base_url=f"{provider.url}/dream-machine/v1", max_retries=0
        ) as sdk,
    ):
        made = await sdk.generations.video.create(
            model="ray-2", prompt=prompt(), callback_url=receiver.url
        )
        assert made.id is not None
        assert made.state == "queued"
        job = made.id
        done = await ends(lambda: sdk.generations.get(job), lambda one: one.state == "completed")
        assert done.assets.video == f"{provider.url}/files/{job}.mp4"
        await until(lambda: len(receiver.received) == 2)
        told = [Generation(**callback.json) for callback in receiver.received]
        assert [one.state for one in told] == ["dreaming", "completed"]


async def test_fal(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(dialect="fal") as provider:
        monkeypatch.setattr(fal_client.client, "QUEUE_URL_FORMAT", f"{provider.url}/")
        sdk = fal_client.AsyncClient(key=TOKEN)
        try:
            handle = await sdk.submit(
                "fal-ai/minimax/video-01",
                arguments={"prompt": prompt()},
                webhook_url=receiver.url,
            )
            assert isinstance(await handle.status(), fal_client.Queued | fal_client.InProgress)
            result = await handle.get()
            assert result["video"]["url"] == f"{provider.url}/files/{handle.request_id}.mp4"
            await until(lambda: len(receiver.received) == 1)
            assert receiver.received[0].json["status"] == "OK"
            assert receiver.received[0].json["payload"] == result

            failing = await sdk.submit(
                "fal-ai/minimax/video-01", arguments={"prompt": prompt(outcome="failed")}
            )
            status = await ends(failing.status, lambda one: isinstance(one, fal_client.Completed))
            assert status.error
            with pytest.raises(fal_client.FalClientHTTPError):
                await failing.get()

            long = await sdk.submit(
                "fal-ai/minimax/video-01", arguments={"prompt": prompt(outcome="canceled")}
            )
            await long.cancel()
            await ends(long.status, lambda one: isinstance(one, fal_client.Completed))
        finally:
            await (await sdk._client).aclose()


async def test_openai(receiver: Receiver) -> None:
    async with (
        running(dialect="openai_videos", endpoint=receiver.url) as provider,
        AsyncOpenAI(
            api_key=TOKEN, base_url=f"{provider.url}/v1", webhook_secret=SECRET, max_retries=0
        ) as sdk,
    ):
        with warnings.catch_warnings():
            # The API that it calls is shut down at its maker; gateways go on with it.
            warnings.simplefilter("ignore", DeprecationWarning)
            made = await sdk.videos.create(model="sora-2", prompt=prompt())
            assert made.status == "queued"
            done = await ends(
                lambda: sdk.videos.retrieve(made.id), lambda one: bool(one.status == "completed")
            )
            assert done.progress == 100
            content = await sdk.videos.download_content(made.id)
            assert (await content.aread()).startswith(b"\x00\x00\x00\x18ftyp")
            deleted = await sdk.videos.delete(made.id)
            assert deleted.deleted
        await until(lambda: len(receiver.received) == 1)
        callback = receiver.received[0]
        sdk.webhooks.verify_signature(callback.body, callback.headers)
        assert callback.json["data"] == {"id": made.id}
        with pytest.raises(InvalidWebhookSignatureError):
            sdk.webhooks.verify_signature(callback.body + b" ", callback.headers)


async def test_mux() -> None:
    async with running(dialect="mux", token="tokenid:tokensecret") as provider:
        configuration = mux_python.Configuration(
            host=provider.url, username="tokenid", password="tokensecret"
        )
        with mux_python.ApiClient(configuration) as client:
            assets = mux_python.AssetsApi(client)

            async def call(function: Callable[..., Any], argument: Any) -> Any:
                return (await asyncio.to_thread(function, argument)).data

            async def create(**plan: Any) -> Any:
                source = mux_python.InputSettings(url=prompt(**plan))
                return await call(
                    assets.create_asset,
                    mux_python.CreateAssetRequest(inputs=[source], passthrough="job-1"),
                )

            made = await create()
            assert (made.status, made.passthrough) == ("preparing", "job-1")
            done = await ends(
                lambda: call(assets.get_asset, made.id), lambda asset: asset.status == "ready"
            )
            assert done.playback_ids[0].id

            failing = await create(outcome="failed", error="no")
            failed = await ends(
                lambda: call(assets.get_asset, failing.id), lambda asset: asset.status == "errored"
            )
            assert failed.errors.messages == ["no"]

            await asyncio.to_thread(assets.delete_asset, made.id)
            with pytest.raises(mux_python.exceptions.NotFoundException):
                await call(assets.get_asset, made.id)
