"""The official SDK drives the pretend provider, so both cannot share one mistake with us."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from replicate.client import Client
from replicate.exceptions import ModelError, ReplicateError
from replicate.prediction import Prediction
from replicate.webhook import (
    InvalidSignatureError,
    InvalidTimestampError,
    Webhooks,
    WebhookSigningSecret,
)

from tests.py.pretend.conftest import SECRET, TOKEN, Provider, Received, Receiver, until
from tests.py.support.waiting import eventually_async

QUICK = {"queue_s": 0.02, "run_s": 0.1, "steps": 4}
ALL_EVENTS = ["start", "output", "logs", "completed"]


@asynccontextmanager
async def opened(provider: Provider, token: str) -> AsyncIterator[Client]:
    client = Client(api_token=token, base_url=provider.url)
    client.poll_interval = 0.02
    try:
        yield client
    finally:
        # The SDK offers no way to close what it opened.
        await client._async_client.aclose()


@pytest.fixture
async def sdk(pretend: Provider) -> AsyncIterator[Client]:
    async with opened(pretend, TOKEN) as client:
        yield client


def rebuilt(callback: Received) -> httpx.Request:
    """Return the callback as the request object that the SDK's validator takes."""
    return httpx.Request(
        "POST", "http://receiver/", headers=callback.headers, content=callback.body
    )


async def test_create_then_wait_until_it_succeeded(sdk: Client) -> None:
    prediction = await sdk.predictions.async_create(
        version="pretend/film", input={"prompt": "a red kite", "pretend": QUICK}
    )
    first = prediction.dict()
    assert (first["status"], first["output"], first["completed_at"]) == ("starting", None, None)

    await prediction.async_wait()

    assert prediction.dict()["status"] == "succeeded"
    assert prediction.output == f"{sdk._base_url}/files/{prediction.id}.mp4"
    assert prediction.input is not None and prediction.input["prompt"] == "a red kite"
    assert prediction.metrics is not None and prediction.metrics["predict_time"] > 0
    assert prediction.started_at is not None and prediction.completed_at is not None


async def test_the_blocking_client_does_the_same(pretend: Provider) -> None:
    def blocking() -> tuple[str, str, str]:
        client = Client(api_token=TOKEN, base_url=pretend.url)
        client.poll_interval = 0.02
        try:
            finished = client.predictions.create("pretend/film", {"pretend": QUICK})
            finished.wait()
            stopped = client.predictions.create("pretend/film", {"pretend": QUICK | {"run_s": 60}})
            stopped.cancel()
            stopped.wait()
            known = client.predictions.get(finished.id)
        finally:
            client._client.close()
        return finished.status, stopped.status, known.id

    finished, stopped, known = await asyncio.to_thread(blocking)
    assert (finished, stopped) == ("succeeded", "canceled")
    assert known


async def test_progress_is_read_out_of_the_logs(sdk: Client) -> None:
    plan = QUICK | {"outcome": "canceled"}
    prediction = await sdk.predictions.async_create("pretend/film", {"pretend": plan})

    async def nearly_done() -> bool:
        await prediction.async_reload()
        return prediction.progress is not None and prediction.progress.percentage == 0.95

    await until(nearly_done)


async def test_wait_inside_the_submission(sdk: Client) -> None:
    prediction = await sdk.predictions.async_create(
        version="pretend/film", input={"pretend": QUICK}, wait=10
    )
    assert prediction.status == "succeeded"


async def test_run_returns_the_output(sdk: Client) -> None:
    output = await sdk.async_run("pretend/film", input={"pretend": QUICK}, use_file_output=False)
    assert str(output).endswith(".mp4")


async def test_run_raises_the_models_own_error(sdk: Client) -> None:
    plan = QUICK | {"outcome": "failed", "error": "NSFW content detected"}
    with pytest.raises(ModelError, match="NSFW content detected"):
        await sdk.async_run("pretend/film", input={"pretend": plan})


async def test_a_models_own_address_and_a_deployment(sdk: Client) -> None:
    by_model = await sdk.models.predictions.async_create(
        model="pretend/film", input={"pretend": QUICK}
    )
    by_deployment = await sdk.deployments.predictions.async_create(
        deployment="pretend/film", input={"pretend": QUICK}
    )
    assert by_model.model == by_deployment.model == "pretend/film"


async def test_cancel(sdk: Client) -> None:
    prediction = await sdk.predictions.async_create(
        version="pretend/film", input={"pretend": QUICK | {"run_s": 60}}
    )
    await prediction.async_cancel()
    await prediction.async_wait()
    assert prediction.status == "canceled"
    assert prediction.output is None


async def test_list_shows_the_newest_first_in_pages(sdk: Client) -> None:
    made = [
        (await sdk.predictions.async_create("pretend/film", {"pretend": QUICK})).id
        for _ in range(3)
    ]
    page = await sdk.predictions.async_list()
    assert [prediction.id for prediction in page.results] == made[::-1]
    assert page.next is None


async def test_a_wrong_token_is_refused(pretend: Provider) -> None:
    async with opened(pretend, "r8_other") as stranger:
        with pytest.raises(ReplicateError) as refused:
            await stranger.predictions.async_get("x")
    assert refused.value.status == 401


async def test_an_unknown_prediction_is_not_found(sdk: Client) -> None:
    with pytest.raises(ReplicateError) as missing:
        await sdk.predictions.async_get("x")
    assert missing.value.status == 404


async def test_the_sdk_validates_every_webhook_with_the_secret_it_fetched(
    sdk: Client, receiver: Receiver
) -> None:
    secret = await sdk.webhooks.default.async_secret()
    assert secret.key == SECRET
    prediction = await sdk.predictions.async_create(
        version="pretend/film",
        input={"pretend": QUICK},
        webhook=receiver.url,
        webhook_events_filter=ALL_EVENTS,
    )
    await eventually_async(lambda: receiver.statuses()[-1:] == ["succeeded"])

    for callback in receiver.received:
        Webhooks.validate(request=rebuilt(callback), secret=secret, tolerance=300)
        parsed = Prediction(**callback.json)
        assert parsed.id == prediction.id


async def test_the_sdk_refuses_forged_and_outdated_webhooks(
    sdk: Client, pretend: Provider, receiver: Receiver
) -> None:
    secret = WebhookSigningSecret(key=SECRET)
    await pretend.make({"key": "k", "faults": ["forged", "outdated"]}, webhook=receiver.url)
    await pretend.over("k")

    refusals: list[str] = []
    for callback in receiver.received:
        try:
            Webhooks.validate(request=rebuilt(callback), secret=secret, tolerance=300)
        except (InvalidSignatureError, InvalidTimestampError) as error:
            refusals.append(type(error).__name__)
            assert callback.status == "failed"
    assert sorted(refusals) == ["InvalidSignatureError", "InvalidTimestampError"]


async def test_a_webhooks_time_stamp_is_now(pretend: Provider, receiver: Receiver) -> None:
    await pretend.make({"key": "k"}, webhook=receiver.url)
    await pretend.over("k")
    stamp = int(receiver.received[0].headers["webhook-timestamp"])
    assert abs(stamp - time.time()) < 5
