"""The webhook port with a certificate of its own, and the check of its own address."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from edge.cli.processes import PROCESSES
from edge.cli.settings import BadSettings, Settings
from edge.intake import http_limits, self_check
from edge.intake.tls import Certificate
from tests.py.intake.conftest import serving
from tests.py.intake.server import answer, serving as answering
from tests.py.intake.signing import sign
from tests.py.support.ports import free_port
from tests.py.support.waiting import eventually_async

BODY = b'{"id": "p1", "status": "processing"}'


def make(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a certificate of 127.0.0.1 that is signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain_file, key_file = folder / "chain.pem", folder / "key.pem"
    chain_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return chain_file, key_file


def trusting(chain: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(chain))


def subject_seen(port: int, trust: ssl.SSLContext) -> str:
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with trust.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            raw = secure.getpeercert(binary_form=True)
    assert raw is not None
    (name,) = x509.load_der_x509_certificate(raw).subject
    return str(name.value)


async def test_tls_of_its_own_makes_plain_http_impossible(database: str, tmp_path: Path) -> None:
    chain, key = make(tmp_path, "first")
    async with serving(database, local=False, certificate=Certificate(chain, key)) as edge:
        url = f"https://127.0.0.1:{edge.port}"
        async with httpx.AsyncClient(verify=trusting(chain), trust_env=False) as client:
            for n in range(2):
                heard = await client.post(
                    f"{url}/callbacks/replicate",
                    content=BODY,
                    headers=sign(BODY, event_id=f"m{n}"),
                )
                assert heard.status_code == 204
        with pytest.raises(httpx.TransportError):
            await edge.deliver(BODY)
        with pytest.raises(ssl.SSLError):
            old = trusting(chain)
            with pytest.warns(DeprecationWarning):
                old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
            await asyncio.to_thread(subject_seen, edge.port, old)


async def test_a_handshake_that_does_not_come_is_given_up(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits, "TLS_HANDSHAKE_SECONDS", 0.3)
    async with serving(database, certificate=Certificate(*make(tmp_path, "slow"))) as edge:
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()


async def test_a_replaced_certificate_is_used_without_a_restart(
    database: str, tmp_path: Path
) -> None:
    certificate = Certificate(*make(tmp_path, "first"))
    first = trusting(tmp_path / "chain.pem")
    async with serving(database, certificate=certificate) as edge:
        assert await asyncio.to_thread(subject_seen, edge.port, first) == "first"

        # Half of a replacement is no replacement.
        good = (tmp_path / "key.pem").read_bytes()
        (tmp_path / "key.pem").write_text("not a key")
        certificate.renew()
        assert await asyncio.to_thread(subject_seen, edge.port, first) == "first"
        (tmp_path / "key.pem").write_bytes(good)

        (tmp_path / "next").mkdir()
        for file in make(tmp_path / "next", "second"):
            os.replace(file, tmp_path / file.name)
        certificate.renew()
        second = trusting(tmp_path / "chain.pem")
        assert await asyncio.to_thread(subject_seen, edge.port, second) == "second"


def test_certificate_and_key_are_set_together_and_checked_at_the_start(tmp_path: Path) -> None:
    chain, key = make(tmp_path, "one")
    settings = Settings(database_url=SecretStr("postgresql://x@y/z"))
    webhook = PROCESSES["webhook"]
    settings.webhook_tls_cert = chain
    with pytest.raises(BadSettings, match="both"):
        webhook.main(settings)
    settings.webhook_tls_key = tmp_path / "missing.pem"
    with pytest.raises(BadSettings, match="cannot be used"):
        webhook.main(settings)
    settings.webhook_tls_key = chain
    with pytest.raises(BadSettings, match="cannot be used"):
        webhook.main(settings)
    settings.webhook_tls_key = key
    webhook.main(settings)


async def test_an_address_that_redirects_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    """W19"""
    for status in (301, 302, 307, 308):
        async with answering(
            answer(status=status, headers={"location": "https://elsewhere.example/"})
        ) as server:
            assert await self_check.check(server.url) == "redirects"
            (asked,) = server.requests
            assert asked.line.startswith("GET /callbacks/self-check ")
    said = capfd.readouterr()
    assert "callback URL redirects" in said.out + said.err


async def test_our_own_answer_is_no_redirect(database: str) -> None:
    """W19"""
    async with serving(database) as edge:
        assert await self_check.check(edge.url) == "reached"


async def test_an_address_that_nobody_answers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """W19: not every network lets a host reach its own public address."""
    monkeypatch.setattr(self_check, "SECONDS", 0.3)
    assert await self_check.check(f"http://127.0.0.1:{free_port()}") == "unreachable"
    assert await self_check.check("https://not a name") == "unreachable"


async def test_the_check_is_made_at_the_start_and_never_in_its_way(
    database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """W19"""
    asked = asyncio.Event()
    go = asyncio.Event()

    async with answering(answer(status=301, headers={"location": "/x"})) as server:
        behave = server.behave

        async def slow(request: object, writer: asyncio.StreamWriter) -> None:
            asked.set()
            await go.wait()
            await behave(request, writer)  # type: ignore[arg-type]

        server.behave = slow
        async with serving(database, callback_url=server.url) as edge:
            assert (await edge.deliver(BODY)).status_code == 204
            async with asyncio.timeout(10):
                await asked.wait()
            go.set()

            said = ""

            def told() -> bool:
                nonlocal said
                captured = capfd.readouterr()
                said += captured.out + captured.err
                return "callback URL redirects" in said

            await eventually_async(told)
