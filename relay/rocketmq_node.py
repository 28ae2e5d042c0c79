"""
One server of a RocketMQ cluster, spoken to over gRPC in this process's own event loop.

Every call ends in bounded time, with an answer or with BusDown. A server that vanished without a
word is found by calls that get no answer: after a few the connection is made anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import grpc
from grpc import aio

from edge import logs
from relay.bus import BusDown
from relay.rocketmq_protocol import DEFINITION, SERVICE

logger = logs.get(__name__)

# How long a call may take that only needs a moment.
ANSWER_WITHIN: Final = 3.0
# So many calls in a row without an answer, and the connection is taken for dead.
UNANSWERED: Final = 2
_OPTIONS: Final = [
    # It tries again by itself, soon: the outage that it knows of may be over.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 3000),
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.enable_retries", 0),
    # Bounds are the broker's: it names the reason when a message is too large.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A connection that is made anew must not be the old one.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True, slots=True)
class Access:
    """How servers are spoken to: as which client, with which key, over TLS or not."""

    client_id: str
    access_key: str | None = None
    secret_key: str | None = None
    tls: bool = False

    def metadata(self) -> list[tuple[str, str]]:
        """Return the headers of a call."""
        headers = [
            ("x-mq-client-id", self.client_id),
            ("x-mq-language", "PYTHON"),
            ("x-mq-client-version", "5.1.2"),
            ("x-mq-protocol", "GRPC_V2"),
        ]
        if self.access_key is None or self.secret_key is None:
            return headers
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        signed = hmac.new(self.secret_key.encode(), now.encode(), hashlib.sha1).hexdigest()
        return [
            *headers,
            ("x-mq-date-time", now),
            (
                "authorization",
                f"MQv2-HMAC-SHA1 Credential={self.access_key}, "
                f"SignedHeaders=x-mq-date-time, Signature={signed}",
            ),
        ]


class Node:
    """A server at `host:port`. It connects when it is first used."""

    def __init__(self, address: str, access: Access) -> None:
        self.address = address
        self.access = access
        self.endpoints = _endpoints(address)
        self._unanswered = 0
        self._leaving: set[asyncio.Task[None]] = set()
        self._open()

    async def call(self, method: str, request: Any, within: float) -> Any:
        """Make a call and return its answer, whatever its status is."""
        call = getattr(self._stub, method)
        try:
            answer = await call(request, metadata=self.access.metadata(), timeout=within)
        except (aio.AioRpcError, aio.UsageError, asyncio.CancelledError) as error:
            if is_ours(error):
                raise
            raise self._down(error) from error
        self._unanswered = 0
        return answer

    async def stream(self, method: str, request: Any, within: float) -> AsyncIterator[Any]:
        """Make a call that is answered in parts, and yield them."""
        call = getattr(self._stub, method)
        try:
            async for part in call(request, metadata=self.access.metadata(), timeout=within):
                yield part
        except (aio.AioRpcError, aio.UsageError, asyncio.CancelledError) as error:
            if is_ours(error):
                raise
            raise self._down(error) from error
        self._unanswered = 0

    def talk(self) -> Any:
        """Open the conversation about settings, which lasts as long as both sides want."""
        return self._stub.Telemetry(metadata=self.access.metadata())

    async def close(self) -> None:
        """Hang up."""
        for leaving in self._leaving:
            leaving.cancel()
        await self._channel.close()

    def _open(self) -> None:
        # The dns resolver takes numeric addresses too.
        target = f"dns:///{self.address}"
        if self.access.tls:
            credentials = grpc.ssl_channel_credentials()
            self._channel = aio.secure_channel(target, credentials, _OPTIONS)
        else:
            self._channel = aio.insecure_channel(target, _OPTIONS)
        self._stub = SERVICE.MessagingServiceStub(self._channel)

    def _down(self, error: BaseException) -> BusDown:
        """Return what a failed call raises, and note that it got no answer."""
        if not isinstance(error, aio.AioRpcError):
            return BusDown("connection closed")
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            self._unanswered += 1
            if self._unanswered >= UNANSWERED:
                self._renew()
        return BusDown(error.code().name)

    def _renew(self) -> None:
        logger.warning("rocketmq connection given up", unanswered=self._unanswered)
        self._unanswered = 0
        leaving = asyncio.create_task(self._channel.close())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        self._open()


def is_ours(error: BaseException) -> bool:
    """Tell whether it is our own task that was ended, and not a call, by closing its connection."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _endpoints(address: str) -> Any:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        scheme = DEFINITION.IPv6 if ipaddress.ip_address(host).version == 6 else DEFINITION.IPv4
    except ValueError:
        scheme = DEFINITION.DOMAIN_NAME
    return DEFINITION.Endpoints(
        scheme=scheme, addresses=[DEFINITION.Address(host=host, port=int(port))]
    )


def require_ok(status: Any) -> None:
    """Raise BusDown unless a status says that all is well."""
    if status.code != DEFINITION.OK:
        raise BusDown(code_name(status))


def code_name(status: Any) -> str:
    """Return what may be logged of a status: its code's name, never the server's words."""
    try:
        return str(DEFINITION.Code.Name(status.code))
    except ValueError:
        return f"code {status.code}"
