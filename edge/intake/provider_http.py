"""
Requests to providers, one at a time and exactly as SQL composed them.

Each is sent at most once: no redirects, no retries, no proxies from the environment. Every answer,
and every lack of one, becomes an outcome; nothing is raised for what a provider does. The line
that matters for submissions runs between `not_sent` (no connection was made, so the provider cannot
have seen the request) and `timeout` or `network` (it may have).

URLs, headers and bodies are never logged. A secret that a provider repeats is blanked before
anything else sees what it said.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import orjson
from prometheus_client import Counter, Histogram

from edge import logs
from edge.intake import credentials, outcomes
from edge.intake.credentials import Credential
from edge.intake.network import Network, until
from edge.intake.outcomes import Outcome
from edge.intake.secrets import Secrets

logger = logs.get(__name__)

CONNECT_SECONDS = 5.0
MAX_BYTES = 8 * 1024 * 1024
USER_AGENT = "aivedio-control/1"

REQUESTS = Counter(
    "aivedio_provider_requests_total",
    "Requests to providers, by outcome.",
    ["provider", "request", "outcome"],
)
SECONDS = Histogram(
    "aivedio_provider_request_seconds",
    "Time of a request to a provider.",
    ["request"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """Mirror of the SQL type aivedio.provider_request."""

    attempt_id: UUID
    lease_token: int
    provider: str
    credential: str
    method: str
    url: str
    headers: dict[str, str] | None
    body: Any
    auth: dict[str, Any] | None
    timeout_s: float
    max_bytes: int
    local: bool
    trace_id: str | None


class ProviderHttp:
    """
    Sends requests; an async context manager that owns the connections.

    `reuse=False` makes a connection for each request: on a kept one a request may be lost to the
    server's closing it just then, and nobody could say whether it was seen.
    """

    def __init__(
        self,
        secrets: Secrets,
        *,
        reuse: bool,
        connections: int = 64,
        per_host: int = 16,
        clock: Callable[[], float] = outcomes.wall_clock,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._secrets = secrets
        self._limits = httpx.Limits(
            max_connections=connections,
            max_keepalive_connections=connections if reuse else 0,
            keepalive_expiry=30.0,
        )
        self._per_host = per_host
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self._clock = clock
        self._tls = tls or httpx.create_ssl_context(trust_env=False)
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def __aenter__(self) -> ProviderHttp:
        """Open no connection yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()

    async def send(self, request: ProviderRequest, name: str) -> Outcome:
        """Send `request` and return what became of it. `name` is its kind, for the metrics."""
        with SECONDS.labels(name).time():
            outcome = await self._send(request)
        word = outcome["kind"]
        if word == "response":
            status = outcome["http_status"]
            # A quota that is used up is no fault, and a share of its own to look at.
            word = "429" if status == 429 else f"{status // 100}xx"
        REQUESTS.labels(request.provider, name, word).inc()
        if word not in ("2xx", "4xx", "429"):
            logger.warning(
                "provider request failed",
                provider=request.provider,
                request=name,
                outcome=word,
                error=outcome.get("error"),
                trace_id=request.trace_id,
            )
        return outcome

    async def _send(self, request: ProviderRequest) -> Outcome:
        try:
            url = urlsplit(request.url)
        except ValueError:
            return outcomes.failed("not_sent", "BadUrl")
        if not url.hostname or url.scheme not in ("https", "http"):
            return outcomes.failed("not_sent", "BadUrl")
        if url.scheme != "https" and not request.local:
            return outcomes.failed("not_sent", "PlainHttp")
        try:
            credential = await credentials.resolve(request.auth, self._secrets, self._clock())
        except credentials.Missing as missing:
            logger.error("credential not found", provider=request.provider, reference=str(missing))
            return outcomes.failed("not_sent", "NoSecret")
        except ValueError:
            logger.error("credential not usable", provider=request.provider)
            return outcomes.failed("not_sent", "BadSecret")
        host = self._hosts.setdefault(url.netloc, asyncio.Semaphore(self._per_host))
        try:
            async with asyncio.timeout(request.timeout_s):
                await host.acquire()
        except TimeoutError:
            return outcomes.failed("not_sent", "HostBusy")
        try:
            return await self._exchange(request, credential)
        finally:
            host.release()

    async def _exchange(self, request: ProviderRequest, credential: Credential) -> Outcome:
        limit = min(request.max_bytes, MAX_BYTES)
        # What httpx allows each read, connect and write is bounded by this as a whole.
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        client = self._client(local=request.local)
        try:
            message = self._message(client, request, _headers(request, credential))
        except (ValueError, TypeError, httpx.InvalidURL) as error:
            # Such as a credential that is no ASCII. Nothing has left, and nobody must wonder.
            return outcomes.failed("not_sent", type(error).__name__)
        try:
            with until(deadline):
                answer = await client.send(message, stream=True)
                try:
                    return await self._read(answer, limit, credential)
                finally:
                    await answer.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            return outcomes.failed("not_sent", type(error).__name__)
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            return outcomes.failed("not_sent", type(error).__name__)
        except httpx.TimeoutException as error:
            return outcomes.failed("timeout", type(error).__name__)
        except (httpx.HTTPError, httpx.StreamError) as error:
            return outcomes.failed("network", type(error).__name__)

    @staticmethod
    def _message(
        client: httpx.AsyncClient, request: ProviderRequest, headers: dict[str, str]
    ) -> httpx.Request:
        content = None if request.body is None else orjson.dumps(request.body)
        timeout = httpx.Timeout(request.timeout_s, connect=min(CONNECT_SECONDS, request.timeout_s))
        return client.build_request(
            request.method, request.url, headers=headers, content=content, timeout=timeout
        )

    async def _read(self, answer: httpx.Response, limit: int, credential: Credential) -> Outcome:
        status = answer.status_code
        announced = answer.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > limit:
            return outcomes.too_large(status)
        body = bytearray()
        received = 0
        try:
            unpack = outcomes.unpacker(answer.headers.get("content-encoding", ""), limit)
            async for piece in answer.aiter_raw():
                received += len(piece)
                body += unpack(piece)
                if received > limit or len(body) > limit:
                    return outcomes.too_large(status)
        except outcomes.TooLarge:
            return outcomes.too_large(status)
        except outcomes.Undecodable:
            return outcomes.malformed(status, b"")
        return outcomes.response(
            status,
            credential.hide(bytes(body)),
            answer.headers.get("retry-after"),
            self._clock(),
        )

    def _client(self, *, local: bool) -> httpx.AsyncClient:
        client = self._clients.get(local)
        if client is None:
            transport = httpx.AsyncHTTPTransport(
                verify=self._tls, trust_env=False, limits=self._limits, retries=0
            )
            # httpx has no parameter for the network; its pool does.
            transport._pool._network_backend = Network(public_only=not local)
            client = httpx.AsyncClient(
                transport=transport,
                follow_redirects=False,
                trust_env=False,
                timeout=None,
                # A cookie of one account's answer must not travel with another's request.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
            self._clients[local] = client
        return client


def _headers(request: ProviderRequest, credential: Credential) -> dict[str, str]:
    headers = {name.lower(): value for name, value in (request.headers or {}).items()}
    headers |= {"accept-encoding": "identity", "user-agent": USER_AGENT}
    headers.setdefault("accept", "application/json")
    if request.body is not None:
        headers.setdefault("content-type", "application/json")
    if credential.header:
        headers[credential.header] = credential.value
    return headers
