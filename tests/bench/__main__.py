"""
`make bench`: run benchmarks, print a table, write bench.json at the project's root.

    python -m tests.bench [NAME…]

Exits 1 only if a benchmark could not run; a missed bar is a fact for the reader of the table.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence

from tests.bench import (
    apply,
    gateway_100k,
    gateway_burst,
    gateway_memory,
    gateway_paced,
    gateway_slow_client,
    gateway_storm,
    inbox,
    relay,
    rocketmq,
    webhook,
)
from tests.bench.harness import Result, report, say

BENCHMARKS: dict[str, Callable[[], Sequence[Result]]] = {
    "apply": apply.run,
    "inbox": inbox.run,
    "relay": relay.run,
    "rocketmq": rocketmq.run,
    "webhook": webhook.run,
    "burst": webhook.run_burst,
    "gateway_memory": gateway_memory.run,
    "gateway_burst": gateway_burst.run,
    "gateway_paced": gateway_paced.run,
    "gateway_slow_client": gateway_slow_client.run,
    "gateway_storm": gateway_storm.run,
    "gateway_100k": gateway_100k.run,
}


def main(names: Sequence[str]) -> int:
    """Run the named benchmarks, or all."""
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        say(f"there is no benchmark {', '.join(unknown)}; known are {', '.join(BENCHMARKS)}")
        return 2
    results: list[Result] = []
    failed = False
    for name in names or BENCHMARKS:
        say(f"{name}:")
        try:
            results += BENCHMARKS[name]()
        except Exception:
            failed = True
            traceback.print_exc()
            say(f"{name} could not run")
    report(results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
