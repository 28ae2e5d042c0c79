"""What must never happen on the way to a provider: secrets that leak, servers that are not it."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edge.intake.provider_http import ProviderHttp
from edge.intake.secrets import Secrets
from tests.py.intake.server import Writer, answer, serving
from tests.py.intake.test_provider_http import REQUEST, provider, send
from tests.py.intake.test_tls import make

BEARER = {"kind": "bearer", "secret": "env:KEY"}


async def test_a_credential_that_cannot_be_used_is_not_sent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with provider(answer()) as (server, http):
        auth = {"kind": "basic", "secret": "env:KEY"}
        outcome = await http.send(replace(REQUEST, url=server.url, auth=auth), "submit")
        assert server.requests == []
    assert outcome == {"kind": "not_sent", "error": "BadSecret"}
    assert "s3cret" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("status", "body"), [(401, b'{"detail": "bad key s3cret"}'), (200, b"<p>s3cret</p>")]
)
async def test_a_secret_that_a_provider_repeats_goes_no_further(status: int, body: bytes) -> None:
    """What a provider says may end in an alarm or in the job's own row."""
    outcome = await send(answer(body, status), auth=BEARER)
    assert "s3cret" not in str(outcome) and "[secret]" in str(outcome)


async def test_libraries_log_no_url_where_our_processes_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A callback URL may stand in the query: its token lets its holder hint."""
    with caplog.at_level(logging.WARNING):
        await send(answer(), auth=BEARER)
    assert caplog.records == []


async def test_a_server_is_known_by_its_certificate_also_when_local(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*make(tmp_path, "not the provider"))
    asked = []

    async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
        asked.append(await reader.read(1))
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    async with listening, ProviderHttp(Secrets({"KEY": "s3cret"}), reuse=False) as http:
        request = replace(REQUEST, url=f"https://127.0.0.1:{port}/", auth=BEARER)
        outcome = await http.send(request, "submit")
    assert outcome == {"kind": "not_sent", "error": "ConnectError"}
    assert asked == []


async def test_a_name_of_ours_is_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads into the own network, in whatever form, is not connected to."""
    async with serving(answer()) as inside:
        for address in ("127.0.0.1", "::ffff:127.0.0.1"):

            async def resolve(host: str, port: int, **_: Any) -> Any:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET  # noqa: B023
                return [(family, socket.SOCK_STREAM, 6, "", (address, inside.port))]  # noqa: B023

            with monkeypatch.context() as patched:
                patched.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
                async with ProviderHttp(Secrets({}), reuse=True) as http:
                    url = f"https://api.provider.example:{inside.port}/jobs"
                    outcome = await http.send(replace(REQUEST, url=url, local=False), "poll")
            assert outcome == {"kind": "not_sent", "error": "ConnectError"}
        assert inside.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_takes_the_credential_along(status: int) -> None:
    async with serving(answer()) as elsewhere:
        for place in (elsewhere.url, f"//127.0.0.1:{elsewhere.port}/", "/elsewhere"):
            outcome = await send(answer(b"", status, {"location": place}), auth=BEARER)
            assert outcome["http_status"] == status
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "path", ["/a/%2E%2E/b", "/a/%2e/b", "/a%2Fb", "/a/b%20c", "/models/veo/operations/o1"]
)
async def test_a_path_arrives_as_it_was_composed(path: str) -> None:
    """What is encoded stays so: no value climbs to another path on its way."""
    async with provider(answer()) as (server, http):
        await http.send(replace(REQUEST, url=server.url + path), "poll")
        assert server.requests[0].line == f"GET {path} HTTP/1.1"
