"""The keys of a recording, packed until somebody wants to read some of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from stageprof_collectors.storage.columns import Ints
from stageprof_collectors.storage.key import UNREADABLE, text_of_key, unpack_keys
from stageprof_collectors.storage.scratch import Scratch


class KeyList:
    """Keys by their running number over all batches; numbers say nothing of equality."""

    def __init__(self) -> None:
        self._packed: list[bytes | memoryview] = []
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

    def spill(self, scratch: Scratch) -> None:
        """Have them on disk from now on."""
        self._packed = scratch.texts(self._packed)

    def texts(self, numbers: ArrayLike) -> list[str]:
        """The texts of keys by their numbers, in that order.

        Raises:
            IndexError: there is no key of that number.
        """
        wanted = np.asarray(numbers, np.int64).reshape(-1)
        texts = [""] * len(wanted)
        for positions, keys in self.parts(wanted):
            for position, key in zip(positions.tolist(), keys, strict=True):
                texts[position] = text_of_key(key)
        return texts

    def parts(self, wanted: Ints) -> Iterator[tuple[Ints, list[object]]]:
        """Keys by their numbers, decoded, as they come: their positions in `wanted`, and they.

        Raises:
            IndexError: there is no key of that number.
        """
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < self._count:
            raise IndexError(f"key {wanted.min()} to {wanted.max()} of {self._count}")
        order = np.argsort(wanted, kind="stable")
        ordered, begun = wanted[order], 0
        while begun < len(ordered):  # a few keys are asked for as often as there are parts
            part = bisect_right(self._starts, ordered[begun]) - 1
            last = part + 1 == len(self._starts)
            end = np.searchsorted(ordered, self._count if last else self._starts[part + 1])
            chosen = slice(begun, int(end))
            yield order[chosen], self._chosen(part, ordered[chosen] - self._starts[part])
            begun = int(end)

    def _chosen(self, part: int, numbers: Ints) -> list[object]:
        """Keys of one part, by their numbers within it."""
        keys = self._part(part)
        if len(numbers) == len(keys) and (np.diff(numbers) == 1).all():
            return keys
        known = len(keys)
        return [keys[i] if i < known else UNREADABLE for i in numbers.tolist()]

    def _part(self, part: int) -> list[object]:
        if self._decoded[0] != part:
            try:
                keys = unpack_keys(self._packed[part])
            except ValueError:
                keys = []
            self._decoded = (part, keys)
        return self._decoded[1]
