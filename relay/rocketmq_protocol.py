"""
The wire protocol of RocketMQ 5, as its official client generates it, and nothing else of it.

Importing the client itself would write log files below the home folder and configure the logging
of the whole process. So the package is entered by a side door: its folder is known, its first
module is not run.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

PACKAGE = "rocketmq"


class NoClient(Exception):
    """The protocol is not installed; the text says how to install it."""


def _generated(name: str) -> Any:
    if known := sys.modules.get(f"{PACKAGE}.grpc_protocol.{name}"):
        return known
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NoClient("RocketMQ needs its client: pip install 'aivedio-control[rocketmq]'")
    shell = ModuleType(PACKAGE)
    shell.__path__ = list(spec.submodule_search_locations)
    before = sys.modules.get(PACKAGE)
    sys.modules[PACKAGE] = shell
    try:
        return importlib.import_module(f"{PACKAGE}.grpc_protocol.{name}")
    except ModuleNotFoundError as error:
        raise NoClient(
            "RocketMQ's 5.x client is not what is installed as `rocketmq`: "
            "pip install 'aivedio-control[rocketmq]' in an environment without the 4.x client"
        ) from error
    finally:
        if before is None:
            del sys.modules[PACKAGE]
        else:
            sys.modules[PACKAGE] = before


# Values and messages; requests and answers; the client of the service.
DEFINITION = _generated("definition_pb2")
MESSAGES = _generated("service_pb2")
SERVICE = _generated("service_pb2_grpc")
