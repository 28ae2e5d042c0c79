"""
The servers of a RocketMQ cluster, and which of them has what of our topic.

The first answer comes from one of the configured addresses. It names the servers to speak to: where
a proxy stands in front it names the proxy itself, else each broker's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from relay.bus import BusDown
from relay.rocketmq_node import ANSWER_WITHIN, Access, Node, require_ok
from relay.rocketmq_protocol import DEFINITION, MESSAGES

ROUTE_LASTS: Final = 20.0
TRY_AGAIN: Final = 2.0

_WRITABLE = (DEFINITION.WRITE, DEFINITION.READ_WRITE)
_READABLE = (DEFINITION.READ, DEFINITION.READ_WRITE)


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as the route names it: the server to ask, and a queue of it to ask for."""

    name: str
    node: Node
    queue: Any


@dataclass(frozen=True, slots=True)
class Route:
    """The brokers that take our messages, and those that have some; each in a fixed order."""

    writable: Sequence[Broker]
    readable: Sequence[Broker]

    def writer(self, task: UUID) -> Broker:
        """Return the broker that all messages of a task go to."""
        return self.writable[task.int % len(self.writable)]


class Cluster:
    """Finds servers and keeps the connections to them."""

    def __init__(self, addresses: Sequence[str], topic: str, access: Access) -> None:
        self.topic = topic
        self._access = access
        self._nodes: dict[str, Node] = {}
        self._first = [self._node(address) for address in addresses]
        self._route: Route | None = None
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def route(self) -> Route:
        """Return the route, asked for anew from time to time; an old one is better than none."""
        loop = asyncio.get_running_loop()
        if self._route is not None and loop.time() < self._until:
            return self._route
        async with self._asking:
            if self._route is None or loop.time() >= self._until:
                try:
                    self._route = await self._ask()
                    self._until = loop.time() + ROUTE_LASTS
                except BusDown:
                    if self._route is None:
                        raise
                    self._until = loop.time() + TRY_AGAIN
            return self._route

    async def close(self) -> None:
        """Hang up."""
        await asyncio.gather(
            *(node.close() for node in self._nodes.values()), return_exceptions=True
        )

    async def _ask(self) -> Route:
        failure = BusDown("no address")
        for node in list(self._first):
            request = MESSAGES.QueryRouteRequest(
                topic=DEFINITION.Resource(name=self.topic), endpoints=node.endpoints
            )
            try:
                answer = await node.call("QueryRoute", request, ANSWER_WITHIN)
                require_ok(answer.status)
                return self._understand(answer.message_queues)
            except BusDown as error:
                failure = error
                # Another one may do better next time, too.
                self._first.append(self._first.pop(0))
        raise failure

    def _understand(self, queues: Sequence[Any]) -> Route:
        writable: dict[str, Broker] = {}
        readable: dict[str, Broker] = {}
        for queue in queues:
            address = queue.broker.endpoints.addresses[0]
            host = f"[{address.host}]" if ":" in address.host else address.host
            broker = Broker(queue.broker.name, self._node(f"{host}:{address.port}"), queue)
            if queue.permission in _WRITABLE:
                writable.setdefault(broker.name, broker)
            if queue.permission in _READABLE:
                readable.setdefault(broker.name, broker)
        if not writable or not readable:
            raise BusDown("no broker has the topic")
        return Route(
            *([brokers[name] for name in sorted(brokers)] for brokers in (writable, readable))
        )

    def _node(self, address: str) -> Node:
        if address not in self._nodes:
            self._nodes[address] = Node(address, self._access)
        return self._nodes[address]
