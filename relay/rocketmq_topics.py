"""
Makes the topic and the consumer groups in a RocketMQ cluster, over its remoting protocol.

The gRPC protocol has no such call. A name server tells which brokers there are, and each of them is
told what to keep; to tell it again changes nothing. The topic's type is FIFO. The dispatcher's
group is orderly: of several dispatchers none overtakes another within a task. The other groups
judge by rows, so for them one message that must wait should not hold up its whole queue.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import re
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ORDERLY: Final = frozenset({"dispatcher"})
QUEUES: Final = 8
# Consumers count tries themselves, and bury sooner than that.
MAX_TRIES: Final = 10_000

_CREATE_TOPIC: Final = 17
_DELETE_TOPIC: Final = 215
_FORGET_TOPIC: Final = 216
_ROUTE: Final = 105
_BROKERS: Final = 106
_CREATE_GROUP: Final = 200
_DELETE_GROUP: Final = 207
_WITHIN: Final = 5.0
_MASTER: Final = "0"

# A broker's number stands as a key without quotes.
_BARE_KEY: Final = re.compile(r"([{,])(\d+):")
_numbers = itertools.count(1)


class CannotCreate(Exception):
    """The cluster did not do what was asked; the text says what it said."""


@dataclass(frozen=True, slots=True)
class Admin:
    """Speaks to the name servers and brokers of a cluster."""

    name_servers: Sequence[str]
    access_key: str | None = None
    secret_key: str | None = None

    def create(self, topic: str, groups: Mapping[str, bool], queues: int = QUEUES) -> list[str]:
        """
        Make a topic and groups, orderly or not, on every broker; return the brokers' addresses.

        Raises CannotCreate when a server is not reached or refuses.
        """
        brokers = self.brokers()
        for broker in brokers:
            self._call(
                broker,
                _CREATE_TOPIC,
                {
                    "topic": topic,
                    "defaultTopic": "TBW102",
                    "readQueueNums": queues,
                    "writeQueueNums": queues,
                    "perm": 6,
                    "topicFilterType": "SINGLE_TAG",
                    "topicSysFlag": 0,
                    "order": "false",
                    "attributes": "+message.type=FIFO",
                },
            )
            for group, orderly in groups.items():
                self._call(broker, _CREATE_GROUP, body=_group(group, orderly))
        return brokers

    def delete(self, topic: str, groups: Iterable[str]) -> None:
        """Remove a topic and groups, with all messages."""
        for broker in self.brokers():
            for group in groups:
                self._call(broker, _DELETE_GROUP, {"groupName": group, "removeOffset": "true"})
            self._call(broker, _DELETE_TOPIC, {"topic": topic})
        for server in self.name_servers:
            self._call(server, _FORGET_TOPIC, {"topic": topic})

    def is_routed(self, topic: str) -> bool:
        """Tell whether the name servers know the topic, which takes them a moment."""
        try:
            self._ask(_ROUTE, {"topic": topic, "acceptStandardJsonOnly": "true"})
        except CannotCreate:
            return False
        return True

    def brokers(self) -> list[str]:
        """Return the address of every broker that takes writes."""
        known = json.loads(_BARE_KEY.sub(r'\1"\2":', self._ask(_BROKERS)))
        found = [
            broker["brokerAddrs"][_MASTER]
            for broker in known["brokerAddrTable"].values()
            if _MASTER in broker["brokerAddrs"]
        ]
        if not found:
            raise CannotCreate("The name servers know no broker.")
        return sorted(found)

    def _ask(self, code: int, fields: Mapping[str, object] | None = None) -> str:
        """Ask the first name server that answers."""
        failure = CannotCreate("There is no name server.")
        for server in self.name_servers:
            try:
                return self._call(server, code, fields)
            except CannotCreate as error:
                failure = error
        raise failure

    def _call(
        self,
        address: str,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
    ) -> str:
        head = {
            "code": code,
            "language": "PYTHON",
            "version": 0,
            "opaque": next(_numbers),
            "flag": 0,
            "extFields": self._signed(fields or {}, body),
        }
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _WITHIN) as connection:
                answer, text = _exchange(connection, json.dumps(head).encode(), body)
        except OSError as error:
            raise CannotCreate(f"{address} does not answer: {error}") from error
        if answer["code"] != 0:
            raise CannotCreate(f"{address} refuses: {answer.get('remark') or answer['code']}")
        return text

    def _signed(self, fields: Mapping[str, object], body: bytes) -> dict[str, str]:
        given = {name: str(value) for name, value in fields.items()}
        if self.access_key is None or self.secret_key is None:
            return given
        given["AccessKey"] = self.access_key
        text = "".join(given[name] for name in sorted(given)).encode() + body
        digest = hmac.new(self.secret_key.encode(), text, hashlib.sha1).digest()
        return {**given, "Signature": base64.b64encode(digest).decode()}


def _group(name: str, orderly: bool) -> bytes:
    return json.dumps(
        {
            "groupName": name,
            "consumeEnable": True,
            "consumeMessageOrderly": orderly,
            "retryMaxTimes": MAX_TRIES,
            "retryQueueNums": 1,
            "brokerId": 0,
            "whichBrokerWhenConsumeSlowly": 1,
            "notifyConsumerIdsChangedEnable": True,
        }
    ).encode()


def _exchange(connection: socket.socket, head: bytes, body: bytes) -> tuple[dict[str, Any], str]:
    size = struct.pack(">II", 4 + len(head) + len(body), len(head))
    connection.sendall(size + head + body)
    with connection.makefile("rb") as answer:
        sizes = answer.read(8)
        if len(sizes) < 8:
            raise ConnectionError("the connection was closed")
        whole, start = struct.unpack(">II", sizes)
        start &= 0xFFFFFF  # the byte above says how the head is written; JSON is 0
        told = json.loads(answer.read(start))
        return told, answer.read(whole - 4 - start).decode()
