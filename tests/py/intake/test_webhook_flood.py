"""Whoever floods the webhook edge is turned away cheaply, and nobody else feels it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import orjson
import pytest

from edge.buckets import Rate
from edge.intake import receive
from edge.intake.flood import Flood
from edge.intake.http_limits import CallbackProtocol, Gate
from tests.py.intake.conftest import Edge, Inbox, serving
from tests.py.intake.signing import sign
from tests.py.intake.test_webhook_faults import wired
from tests.py.support.clusters import Cluster
from tests.py.support.waiting import eventually_async

BODY = orjson.dumps({"id": "p1", "status": "processing"})
BAD = {**sign(BODY), "webhook-signature": "v1," + "A" * 43 + "="}
ELSEWHERE = "127.0.0.2"


@asynccontextmanager
async def stranger(edge: Edge, address: str = ELSEWHERE) -> AsyncIterator[httpx.AsyncClient]:
    """A client at another address of this machine."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    async with httpx.AsyncClient(base_url=edge.url, transport=transport) as client:
        yield client


async def guess(client: httpx.AsyncClient) -> int:
    answer = await client.post("/callbacks/replicate", content=BODY, headers=BAD)
    return answer.status_code


async def connect(edge: Edge, source: str = ELSEWHERE) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", edge.port, local_addr=(source, 0))
    return writer


async def rest(edge: Edge, *pieces: bytes, source: str = ELSEWHERE) -> bytes:
    """Send pieces and return all that comes until the edge closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port, local_addr=(source, 0))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_forged_callbacks_use_up_nothing_of_their_providers(
    database: str, inbox: Inbox
) -> None:
    flood = Flood(by_provider=Rate(0.01, 2))
    async with serving(database, flood=flood) as edge, stranger(edge) as forger:
        assert {await guess(forger) for _ in range(20)} == {401}
        good = [(await edge.deliver(BODY, event_id=f"g{n}")).status_code for n in range(3)]
    assert good == [204, 204, 429]
    assert inbox.count() == 2


async def test_who_is_refused_too_often_is_turned_away_unread(database: str) -> None:
    async with serving(database, flood=Flood(refused=Rate(0.01, 3))) as edge:
        async with stranger(edge) as forger:
            assert [await guess(forger) for _ in range(3)] == [401] * 3
            # Also on the connection that it has, which ends.
            answer = await forger.post("/callbacks/replicate", content=BODY, headers=BAD)
            assert answer.headers["connection"] == "close"
            assert answer.status_code == 429
            assert answer.json()["code"] == "too_many_requests"
            assert int(answer.headers["retry-after"]) >= 1
        # A new one is answered before it says anything.
        assert (await rest(edge)).startswith(b"HTTP/1.1 429")
        assert (await edge.deliver(BODY)).status_code == 204


async def test_forgeries_from_a_good_senders_address_do_not_shut_it_out(
    database: str, inbox: Inbox
) -> None:
    """Anybody may have a provider's servers call us with a signature that is not ours."""
    async with serving(database, flood=Flood(refused=Rate(0.01, 3))) as edge:
        assert (await edge.deliver(BODY, event_id="first")).status_code == 204
        assert {await guess(edge.client) for _ in range(20)} == {401}
        assert (await edge.deliver(BODY, event_id="second")).status_code == 204
    assert inbox.count() == 2


@pytest.mark.parametrize("path", ["/callbacks/nobody", "/callbacks/replicate/a-guessed-token"])
async def test_guessing_names_and_tokens_is_as_slow(database: str, inbox: Inbox, path: str) -> None:
    """A body too large is not read, but would have its job asked about, if there were one."""
    large = {"content-type": "application/json", "content-length": "8000000"}
    head = b"POST %b HTTP/1.1\r\nhost: x\r\n" % path.encode()
    head += b"".join(f"{name}: {value}\r\n".encode() for name, value in large.items()) + b"\r\n"
    async with serving(database, flood=Flood(refused=Rate(0.01, 3))) as edge:
        statuses = [(await rest(edge, head))[9:12] for _ in range(3)]
        assert statuses in ([b"404"] * 3, [b"413"] * 3)
        assert (await rest(edge))[9:12] == b"429"
    assert inbox.count() == 0


async def test_forgeries_never_reach_the_database(database: str, cluster: Cluster) -> None:
    async with wired(database, cluster) as (laid, address), serving(address) as edge:
        await laid.cut()
        async with stranger(edge) as forger:
            assert {await guess(forger) for _ in range(20)} == {401}
        assert edge.is_ready
        assert (await edge.deliver(BODY)).status_code == 503


async def test_a_provider_without_its_key_is_not_taken_for_a_forger(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W7"""
    monkeypatch.delenv("REPLICATE_WEBHOOK_SECRET")
    monkeypatch.delenv("REPLICATE_WEBHOOK_SECRET_PREVIOUS")
    async with serving(database, flood=Flood(refused=Rate(0.01, 2))) as edge:
        assert [(await edge.deliver(BODY)).status_code for _ in range(5)] == [401] * 5


async def test_one_source_may_have_so_many_connections(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W28"""
    monkeypatch.setattr(Gate, "per_source", 3)
    async with serving(database) as edge:
        idle = [await connect(edge) for _ in range(3)]
        assert (await rest(edge)).startswith(b"HTTP/1.1 503")
        assert (await edge.deliver(BODY)).status_code == 204
        for writer in idle:
            writer.close()

        async def served() -> bool:
            async with stranger(edge) as client:
                return await guess(client) == 401

        await eventually_async(served)


async def test_slow_bodies_of_one_source_leave_room_for_others(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W28"""
    monkeypatch.setattr(receive, "MAX_IN_FLIGHT_PER_SOURCE", 3)
    head = b"POST /callbacks/replicate HTTP/1.1\r\nhost: x\r\n"
    head += b"content-type: application/json\r\ncontent-length: 100\r\n\r\n"
    async with serving(database) as edge:
        slow = [asyncio.create_task(rest(edge, head)) for _ in range(3)]

        async def refused() -> bool:
            async with stranger(edge) as client:
                return await guess(client) == 503

        await eventually_async(refused)
        assert (await edge.deliver(BODY)).status_code == 204
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

        async def served() -> bool:
            async with stranger(edge) as client:
                return await guess(client) == 401

        await eventually_async(served)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"POST /callbacks/nobody", b"404"),
        (b"POST /nowhere", b"404"),
        (b"PUT /callbacks/replicate", b"405"),
        (b"POST /callbacks/replicate", b"415"),
    ],
)
async def test_a_body_that_drips_after_its_refusal_is_cut_off(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, line: bytes, status: bytes
) -> None:
    monkeypatch.setattr(CallbackProtocol, "body_within_s", 0.3)
    answer = await rest(edge, line + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 " + status) or answer == b""
    assert (await edge.deliver(BODY)).status_code == 204


async def test_a_callback_that_waits_for_its_commit_is_not_taken_for_slow(
    edge: Edge, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    monkeypatch.setattr(CallbackProtocol, "body_within_s", 0.1)
    inbox.session.execute("begin; lock table aivedio.provider_callback_inbox in exclusive mode")
    waiting = asyncio.create_task(edge.deliver(BODY))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), 0.5)
    inbox.session.execute("rollback")
    assert (await waiting).status_code == 204
