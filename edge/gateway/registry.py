"""
Who listens for which project, in Redis: what lets a dispatcher publish to those gateways only.

A gateway is a node with a channel of its own, named anew at every start. It registers a project
before it reads that project's events from PostgreSQL: whatever commits after the read finds it
registered. Registrations end by themselves, since a gateway may die; the clock is that of Redis.
What a gateway is not sent, because Redis forgot it, its looks at PostgreSQL find.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

from prometheus_client import Counter, Gauge
from redis.exceptions import RedisError

from edge import logs, pubsub
from edge.backoff import pause

logger = logs.get(__name__)

LASTS_S: Final = 15
REFRESH_S: Final = 5.0
ANSWER_S: Final = 1.0
# A script call holds up everybody else in Redis.
AT_ONCE: Final = 500

REGISTERED = Gauge("aivedio_gateway_registered", "Projects that this gateway is registered for.")
FAILED = Counter(
    "aivedio_gateway_register_failures_total", "Registrations that Redis did not take."
)

# ARGV: the names' prefix, the node, how many seconds it lasts, projects.
_REGISTER: Final = """\
local now = tonumber(redis.call('TIME')[1])
for place = 4, #ARGV do
  local key = ARGV[1] .. ':project:' .. ARGV[place]
  redis.call('ZADD', key, now + ARGV[3], ARGV[2])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('EXPIRE', key, ARGV[3])
end
"""

# ARGV: the names' prefix, then projects and frames in turn. Returns how often it published.
_PUBLISH: Final = """\
local now = redis.call('TIME')[1]
local nodes = {}
local count = 0
for place = 2, #ARGV, 2 do
  local project = ARGV[place]
  if not nodes[project] then
    local key = ARGV[1] .. ':project:' .. project
    nodes[project] = redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')
  end
  for _, node in ipairs(nodes[project]) do
    redis.call('PUBLISH', ARGV[1] .. ':node:' .. node, ARGV[place + 1])
    count = count + 1
  end
end
return count
"""


def publish(pipeline: Any, database_id: str, frames: Sequence[bytes]) -> None:
    """Add to a pipeline what publishes events, in order, to the nodes that follow their project."""
    for first in range(0, len(frames), AT_ONCE):
        pairs: list[str | bytes] = []
        for frame in frames[first : first + AT_ONCE]:
            pairs += [frame[:16].hex(), frame]
        pipeline.eval(_PUBLISH, 0, f"aivedio:{database_id}", *pairs)


class Registry:
    """Keeps one gateway registered."""

    def __init__(self, url: str, database_id: str) -> None:
        self._client = pubsub.client(url, answer_within=ANSWER_S, client_name="aivedio-registry")
        self._prefix = f"aivedio:{database_id}"
        self._node = uuid4().hex[:12]
        self._until: dict[UUID, float] = {}
        self._again = asyncio.Event()

    @property
    def channel(self) -> str:
        """The channel that this node must be subscribed to before it registers anything."""
        return f"{self._prefix}:node:{self._node}"

    async def ensure(self, project: UUID) -> None:
        """Have a project registered, or know that it could not be; a read of it follows."""
        if self._until.get(project, 0.0) <= time.monotonic():
            await self._register([project])

    def forget(self) -> None:
        """Register everything anew: Redis may have lost it."""
        self._until.clear()
        self._again.set()

    async def run(self, projects: Callable[[], Iterable[UUID]], stopping: asyncio.Event) -> None:
        """Refresh the registrations of `projects` until `stopping`."""
        while not stopping.is_set():
            self._again.clear()
            followed = list(projects())
            kept = set(followed)
            self._until = {one: at for one, at in self._until.items() if one in kept}
            for first in range(0, len(followed), AT_ONCE):
                await self._register(followed[first : first + AT_ONCE])
            REGISTERED.set(len(self._until))
            refresh = asyncio.create_task(pause(REFRESH_S, stopping))
            again = asyncio.create_task(self._again.wait())
            await asyncio.wait({refresh, again}, return_when=asyncio.FIRST_COMPLETED)
            refresh.cancel()
            again.cancel()

    async def close(self) -> None:
        """Leave Redis; the registrations end by themselves."""
        await self._client.aclose()

    async def _register(self, projects: Sequence[UUID]) -> None:
        # From before the call: Redis counts from some moment after it.
        until = time.monotonic() + LASTS_S - REFRESH_S
        names = [project.hex for project in projects]
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._client.eval(_REGISTER, 0, self._prefix, self._node, LASTS_S, *names)
        except (RedisError, OSError, TimeoutError) as error:
            FAILED.inc()
            logger.warning("not registered", kind=type(error).__name__, projects=len(projects))
            return
        self._until.update(dict.fromkeys(projects, until))
