"""What was found out of classes, kept for as long as they are there.

A class that a function made holds what its methods close over: it must not live longer for us.
"""

from __future__ import annotations

import weakref
from typing import Final


class Known:
    """A number for each class.

    Attributes:
        numbers: by the id of a class; to be read only, and without a call: it is asked for often.
    """

    def __init__(self) -> None:
        self.numbers: Final[dict[int, int]] = {}
        self._alive: Final[dict[int, weakref.ref[type]]] = {}

    def remember(self, cls: type, number: int) -> int:
        """The number of a class from now on; returns it."""
        key, numbers, alive = id(cls), self.numbers, self._alive

        def forget(_: object) -> None:
            numbers.pop(key, None)
            alive.pop(key, None)

        alive[key] = weakref.ref(cls, forget)
        numbers[key] = number
        return number
