"""
What every benchmark shares: a result with its reference from the same run, the table, bench.json.

These machines are noisy, so nothing is judged by an absolute rate: variants take turns, each
several times, and what is compared are medians. A bar is a ratio or, where the design promises an
absolute number, that number.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "bench.json"


@dataclass(frozen=True, slots=True)
class Result:
    """
    One line of the report.

    `reference` was measured in the same run, in the same unit; `bar` is what the ratio must reach
    (`value` itself, when there is no reference), or with `at_most` must not exceed. `spread` is
    (max - min) / median of our runs.
    """

    name: str
    value: float
    unit: str
    reference: float | None = None
    bar: float | None = None
    spread: float = 0.0
    at_most: bool = False

    @property
    def ratio(self) -> float | None:
        """Ours over the reference."""
        return self.value / self.reference if self.reference else None

    @property
    def ok(self) -> bool | None:
        """Whether the bar is reached; None where there is none."""
        if self.bar is None:
            return None
        judged = self.value if self.ratio is None else self.ratio
        return judged <= self.bar if self.at_most else judged >= self.bar

    def as_json(self) -> dict[str, object]:
        """Return the shape of bench.json."""
        return {
            "value": self.value,
            "unit": self.unit,
            "reference": self.reference,
            "ratio": self.ratio,
            "bar": self.bar,
            "ok": self.ok,
            "spread": self.spread,
        }


def take_turns(
    variants: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, tuple[float, float]]:
    """Run every variant once a round, in turn; return each one's median and spread."""
    seen: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds):
        for name, measure in variants.items():
            say(f"  round {number + 1} of {rounds}: {name} …")
            seen[name].append(measure())
    return {
        name: (statistics.median(values), (max(values) - min(values)) / statistics.median(values))
        for name, values in seen.items()
    }


def say(line: str) -> None:
    """Show progress to whoever waits."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def report(results: Sequence[Result]) -> None:
    """Print the table and merge the results into bench.json."""
    known = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    known.update({result.name: result.as_json() for result in results})
    REPORT.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")

    header = ("what", "ours", "reference", "ratio", "bar", "spread", "ok")
    rows = [header, *(_row(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    for row in rows:
        sys.stdout.write(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            + "\n"
        )


def _row(result: Result) -> tuple[str, ...]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

    return (
        result.name,
        f"{number(result.value)} {result.unit}",
        number(result.reference),
        number(result.ratio),
        number(result.bar),
        f"± {result.spread / 2:.0%}",
        {True: "yes", False: "NO", None: ""}[result.ok],
    )
