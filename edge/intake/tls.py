"""The webhook port's own certificate, read again when its file is replaced."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from edge import logs
from edge.backoff import pause

logger = logs.get(__name__)

LOOK_EVERY = 60.0


class Certificate:
    """A certificate chain with its key. Raises OSError or ssl.SSLError if they are not usable."""

    def __init__(self, chain: Path, key: Path) -> None:
        self._chain = chain
        self._key = key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._seen = self._stamps()
        self.context.load_cert_chain(chain, key)

    async def follow(self, stopping: asyncio.Event) -> None:
        """Take over replaced files for new connections, until stopping."""
        while not stopping.is_set():
            await pause(LOOK_EVERY, stopping)
            await asyncio.to_thread(self.renew)

    def renew(self) -> None:
        """Load the files again if they are others than before. What cannot be used is not."""
        try:
            stamps = self._stamps()
            if stamps != self._seen:
                # Tried apart first: a chain that does not fit its key would spoil the context.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._chain, self._key)
                self.context.load_cert_chain(self._chain, self._key)
                self._seen = stamps
                logger.info("certificate replaced")
        except (OSError, ssl.SSLError) as error:
            logger.error("certificate not usable", reason=type(error).__name__)

    def _stamps(self) -> list[tuple[int, int]]:
        found = [path.stat() for path in (self._chain, self._key)]
        return [(stat.st_mtime_ns, stat.st_ino) for stat in found]
