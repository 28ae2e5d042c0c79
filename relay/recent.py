"""Which events passed lately: a bounded memory, so that a repeat is recognised cheaply."""

from __future__ import annotations

from collections import OrderedDict


class Recent:
    """Remembers the last `size` numbers that were added."""

    def __init__(self, size: int = 65_536) -> None:
        self._size = size
        self._known: OrderedDict[int, None] = OrderedDict()

    def knows(self, number: int) -> bool:
        """Tell whether a number is still remembered."""
        return number in self._known

    def add(self, number: int) -> None:
        """Remember a number as the newest."""
        self._known[number] = None
        self._known.move_to_end(number)
        if len(self._known) > self._size:
            self._known.popitem(last=False)
