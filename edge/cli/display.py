"""What `aivedio up` tells a person, on stderr: steps with their times, then what happens."""

from __future__ import annotations

import sys
import time


class Display:
    """
    Reports steps, each with the time that it took.

    On a terminal the step under way stands in the last line and is replaced when it is done;
    elsewhere every step is a line of its own, written when it is done.
    """

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._step: str | None = None
        self._since = time.monotonic()
        self._broken = False

    def step(self, text: str) -> None:
        """Begin a step, which ends the one before."""
        self.done()
        self._step, self._since = text, time.monotonic()
        if self._terminal:
            self._write(f"  … {text}")

    def done(self) -> None:
        """End the step under way, if any."""
        if self._step is not None:
            took = time.monotonic() - self._since
            self._write(f"\r\033[K  ✓ {self._step}" if self._terminal else f"  ✓ {self._step}")
            self._write(f"  {took:.1f} s\n")
            self._step = None

    def broke(self) -> None:
        """End the step under way as the one that failed; steps after that only clean up."""
        if self._broken:
            self.done()
        elif self._step is not None:
            self._broken = True
            self._write(f"\r\033[K  ✗ {self._step}\n" if self._terminal else f"  ✗ {self._step}\n")
            self._step = None

    def say(self, text: str) -> None:
        """Write a line, above the step under way."""
        if self._step is not None and self._terminal:
            self._write(f"\r\033[K{text}\n  … {self._step}")
        else:
            self._write(f"{text}\n")

    def detail(self, _text: str) -> None:
        """Take what is said within a step; the step's name says enough."""

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
