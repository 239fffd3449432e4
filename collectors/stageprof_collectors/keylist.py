"""The keys of a recording, packed until somebody wants to read some of them."""

from __future__ import annotations

from copy import copy
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from stageprof_collectors.key import UNREADABLE, text_of_key, unpack_keys


class KeyList:
    """Keys by their running number over all batches; numbers say nothing of equality."""

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._starts: list[int] = []
        self._count = 0
        #: the part that was decoded last, since the next question is often about it too
        self._decoded: tuple[int, list[object]] = (-1, [])

    def __len__(self) -> int:
        return self._count

    def copy(self) -> KeyList:
        """The same keys in a list of their own."""
        other = copy(self)
        other._packed, other._starts = self._packed.copy(), self._starts.copy()
        return other

    def add(self, packed: bytes, count: int) -> int:
        """Append a msgpack array of `count` keys; the number of the first."""
        first = self._count
        self._packed.append(packed)
        self._starts.append(first)
        self._count += count
        return first

    def texts(self, numbers: ArrayLike) -> list[str]:
        """The texts of keys by their numbers, in that order.

        Raises:
            IndexError: there is no key of that number.
        """
        wanted = np.asarray(numbers, np.int64).reshape(-1)
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < self._count:
            raise IndexError(f"key {wanted.min()} to {wanted.max()} of {self._count}")
        texts = [""] * len(wanted)
        order = np.argsort(wanted, kind="stable")
        parts = np.searchsorted(np.array(self._starts), wanted[order], side="right") - 1
        starts = np.flatnonzero(np.diff(parts, prepend=-1))
        for start, stop in pairwise([*starts.tolist(), len(order)]):
            positions = order[start:stop]
            self._fill(texts, int(parts[start]), positions.tolist(), wanted[positions].tolist())
        return texts

    def _fill(self, texts: list[str], part: int, positions: list[int], numbers: list[int]) -> None:
        """Look up keys that all lie in one part."""
        keys, start = self._part(part), self._starts[part]
        for position, number in zip(positions, numbers, strict=True):
            index = number - start
            texts[position] = text_of_key(keys[index]) if index < len(keys) else UNREADABLE

    def _part(self, part: int) -> list[object]:
        if self._decoded[0] != part:
            try:
                keys = unpack_keys(self._packed[part])
            except ValueError:
                keys = []
            self._decoded = (part, keys)
        return self._decoded[1]
