"""nginx with the configuration of deploy/, on free ports, as a plain user, for one test."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from edge.cli import account
from tests.py.support.waiting import eventually_async

CONFIGURATION = Path(__file__).resolve().parents[3] / "deploy" / "nginx" / "aivedio.conf"

_MAIN = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/log warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  include {folder}/aivedio.conf;
}}
"""


@dataclass(frozen=True)
class Nginx:
    """Where it answers, and the certificate to believe."""

    port: int
    certificate: Path

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))


@asynccontextmanager
async def nginx(port: int, gateway: str, **changed: str) -> AsyncIterator[Nginx]:
    """
    Serve `gateway` over HTTPS on `port`.

    `changed` are directives with other values than in the file, such as proxy_read_timeout="2s".
    """
    folder = Path(tempfile.mkdtemp(prefix="av-nginx-"))
    try:
        certificate, process = _start(folder, port, gateway, changed)
        try:
            await _answers(process, port, folder)
            yield Nginx(port, certificate)
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait)
    finally:
        shutil.rmtree(folder)


def _start(
    folder: Path, port: int, gateway: str, changed: dict[str, str]
) -> tuple[Path, subprocess.Popen[bytes]]:
    who = account.for_servers()
    certificate, key = _certificate(folder)
    text = CONFIGURATION.read_text()
    for old, new in (
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("server 127.0.0.1:8080;", f"server {gateway.removeprefix('http://')};"),
        ("/etc/ssl/aivedio/fullchain.pem", str(certificate)),
        ("/etc/ssl/aivedio/key.pem", str(key)),
        *(_directive(text, name, value) for name, value in changed.items()),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "aivedio.conf").write_text(text)
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder))
    (folder / "log").touch()
    for path in (folder, *folder.iterdir()):
        who.own(path, 0o700 if path.is_dir() else 0o600)
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert program, "nginx is not installed"
    process = subprocess.Popen(
        [program, "-p", folder, "-e", folder / "log", "-c", folder / "nginx.conf"],
        stderr=subprocess.DEVNULL,
        **who.popen,
    )
    return certificate, process


def _directive(text: str, name: str, value: str) -> tuple[str, str]:
    (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{name} ")]
    return line, f"{name} {value};"


async def _answers(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    async def accepts() -> bool:
        assert process.poll() is None or not (log := folder / "log").read_text(), log.read_text()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await eventually_async(accepts, 20.0)


def _certificate(folder: Path) -> tuple[Path, Path]:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(private, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    plain = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    paths[1].write_bytes(plain)
    return paths
