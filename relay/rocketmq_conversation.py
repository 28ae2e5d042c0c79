"""
What keeps a server of RocketMQ knowing a consumer.

A server hands out messages only to a client whose settings it knows, and it forgets them with the
conversation in which it was told: after every restart. So each member keeps one conversation with
each server, and begins it again as soon as it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from grpc import aio

from edge import logs
from edge.backoff import Backoff
from relay.bus import BusDown
from relay.rocketmq_node import ANSWER_WITHIN, Node, is_ours, require_ok
from relay.rocketmq_protocol import DEFINITION, MESSAGES

logger = logs.get(__name__)

HEARTBEAT: Final = 8.0
KNOWN_WITHIN: Final = 5.0
GOODBYE_WITHIN: Final = 1.0


class Conversation:
    """One conversation with one server. `known` is set while the server knows what we want."""

    def __init__(self, node: Node, wishes: Any) -> None:
        self.known = asyncio.Event()
        # Whether the group is one whose queues the broker hands out strictly in order.
        self.orderly = False
        self._node = node
        self._wishes = wishes
        self._stream: Any = None
        self._task = asyncio.create_task(self._keep())

    def again(self) -> None:
        """Begin anew: the server has answered that it does not know us."""
        self.known.clear()
        if self._stream is not None:
            self._stream.cancel()

    async def close(self) -> None:
        """Say goodbye, in bounded time."""
        known = self.known.is_set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if known:
            goodbye = MESSAGES.NotifyClientTerminationRequest(group=self._wishes.group)
            try:
                await self._node.call("NotifyClientTermination", goodbye, GOODBYE_WITHIN)
            except BusDown:
                return

    async def _keep(self) -> None:
        backoff = Backoff(0.1, 2.0)
        while True:
            try:
                await self._converse(backoff)
            except asyncio.CancelledError as error:
                if is_ours(error):
                    raise
            except (BusDown, TimeoutError, aio.AioRpcError, aio.UsageError) as error:
                if backoff.tries == 0:
                    logger.warning("rocketmq does not talk", kind=type(error).__name__)
            await asyncio.sleep(backoff.next())

    async def _converse(self, backoff: Backoff) -> None:
        """Tell the server what we want, and listen until it or we have enough."""
        self._stream = stream = self._node.talk()
        heart: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                await stream.write(self._settings())
                answer = await stream.read()
            if answer is aio.EOF:
                raise BusDown("conversation refused")
            require_ok(answer.status)
            self.orderly = answer.settings.subscription.fifo
            self.known.set()
            backoff.reset()
            heart = asyncio.create_task(self._beat(stream))
            while await stream.read() is not aio.EOF:
                pass
        finally:
            self.known.clear()
            stream.cancel()
            if heart is not None:
                heart.cancel()

    async def _beat(self, stream: Any) -> None:
        """Show signs of life; end the conversation with a server that shows none."""
        request = MESSAGES.HeartbeatRequest(
            group=self._wishes.group, client_type=DEFINITION.SIMPLE_CONSUMER
        )
        try:
            while True:
                answer = await self._node.call("Heartbeat", request, ANSWER_WITHIN)
                require_ok(answer.status)
                await asyncio.sleep(HEARTBEAT)
        except BusDown:
            stream.cancel()

    def _settings(self) -> Any:
        settings = DEFINITION.Settings(
            client_type=DEFINITION.SIMPLE_CONSUMER,
            access_point=self._node.endpoints,
            subscription=self._wishes,
            user_agent=DEFINITION.UA(language=DEFINITION.PYTHON, version="5.1.2"),
        )
        settings.request_timeout.FromMilliseconds(round(ANSWER_WITHIN * 1000))
        return MESSAGES.TelemetryCommand(settings=settings)


async def first_known(conversations: Sequence[Conversation]) -> None:
    """Return once a server knows us; raise BusDown when that takes too long."""
    if any(one.known.is_set() for one in conversations):
        return
    waits = [asyncio.create_task(one.known.wait()) for one in conversations]
    done, _ = await asyncio.wait(waits, timeout=KNOWN_WITHIN, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    if not done:
        raise BusDown("no server knows this client yet")
