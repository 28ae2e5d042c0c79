"""The webhook edge in a process of its own: `python -m tests.bench.webhook_edge`."""

from __future__ import annotations

import argparse
import sys

from edge import process
from edge.buckets import Rate
from edge.intake import webhook
from edge.intake.flood import Flood

# All good callbacks of a benchmark come from one address, faster than any provider's would.
UNLIMITED = Rate(1e9, 1e9)


def main() -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--rows", type=int, default=64)
    arguments = parser.parse_args()
    return process.run(
        "webhook",
        lambda stopping, ready: webhook.run(
            database_url=arguments.database,
            listen=f"127.0.0.1:{arguments.port}",
            local=True,
            commits_in_flight=arguments.in_flight,
            rows_per_commit=arguments.rows,
            flood=Flood(by_source=UNLIMITED, by_provider=UNLIMITED),
            stopping=stopping,
            ready=ready,
        ),
        log_level="error",
    )


if __name__ == "__main__":
    sys.exit(main())
