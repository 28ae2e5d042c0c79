"""Where the outside world's news comes in: callbacks, polls, and the answers to submissions."""

from __future__ import annotations
