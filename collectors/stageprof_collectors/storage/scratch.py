"""Large columns in files without a name: the machine may take their memory back when it likes."""

from __future__ import annotations

import math
import mmap
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakSet

import numpy as np

A = TypeVar("A", bound="np.ndarray[Any, Any]")

#: Columns smaller than this stay where they are: a million rows of 64 bits.
LEAST: Final = 8_000_000
#: Where large files that are soon gone belong; `/tmp` is memory itself on many machines.
_DISK: Final = Path("/var/tmp")  # noqa: S108 (its files have no name, and nobody else can open them)


class Scratch:
    """Keeps what is large on disk; it is read from there when it is used.

    Args:
        least: columns smaller than this stay in memory, bytes; by default all do.
    """

    def __init__(self, least: float = math.inf) -> None:
        self._least = least
        self._maps: WeakSet[mmap.mmap] = WeakSet()

    def column(self, values: A) -> A:
        """The same values, read-only and on disk if they are large and it has room for them."""
        small = values.nbytes < self._least
        if small or not values.flags.c_contiguous or _lies_on_disk(values):
            return values
        try:
            mapped = self._mapped([values.view(np.uint8).data])
        except OSError:
            self._least = math.inf  # the disk is full: what follows stays in memory
            return values
        kept: A = np.frombuffer(mapped, values.dtype).reshape(values.shape)  # type: ignore[assignment]
        return kept

    def texts(self, parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
        """The same for many pieces at once."""
        if sum(len(part) for part in parts) < self._least:
            return list(parts)
        try:
            mapped = memoryview(self._mapped(parts))
        except OSError:
            return list(parts)
        stops = np.cumsum([len(part) for part in parts]).tolist()
        return [mapped[stop - len(part) : stop] for part, stop in zip(parts, stops, strict=True)]

    @property
    def nbytes(self) -> int:
        """What lies on disk."""
        return sum(len(mapped) for mapped in list(self._maps))

    def release(self) -> None:
        """Give back the memory in which what was read of them lies; the next use reads it again."""
        for mapped in list(self._maps) if hasattr(mmap, "MADV_DONTNEED") else ():
            mapped.madvise(mmap.MADV_DONTNEED)

    def _mapped(self, parts: Iterable[bytes | memoryview]) -> mmap.mmap:
        folder = _DISK if _DISK.is_dir() else None
        # Written, not filled through the map: a full disk is an error so, and no signal that kills.
        with tempfile.TemporaryFile(prefix="stageprof-", dir=folder) as file:
            for part in parts:
                file.write(part)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.add(mapped)
        return mapped


def _lies_on_disk(values: np.ndarray[Any, Any]) -> bool:
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap)


__all__ = ["LEAST", "Scratch"]
