"""Sums that the program's threads add to without a lock, while another one takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")


class Sums(Generic[K]):
    """Three numbers for each key, of at most `most` keys; what of more is added under `rest(key)`.

    All that is added is taken, once. The interpreter lets another thread go on at a call, or where
    a loop begins again: between the line that finds the numbers of a key in `known` and the last
    addition to them there is neither, here and in `process`.
    """

    def __init__(self, most: int = sys.maxsize, rest: Callable[[K], K] = lambda key: key) -> None:
        self.known: dict[K, list[int]] = {}
        self._most = most
        self._rest = rest

    def add(self, key: K, first: int, second: int, third: int = 0) -> None:
        """Add to the numbers of a key."""
        while True:
            try:
                total = self.known[key]
            except KeyError:  # the first since they were taken, which may be just now
                key = key if len(self.known) < self._most else self._rest(key)
                self.known.setdefault(key, [0, 0, 0])
                continue
            total[0] += first
            total[1] += second
            total[2] += third
            return

    def take(self) -> dict[K, list[int]]:
        """Remove and return all of them."""
        known, self.known = self.known, {}
        return known

    def clear(self) -> None:
        """Forget them."""
        self.known.clear()
