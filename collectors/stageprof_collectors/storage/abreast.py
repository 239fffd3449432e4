"""Columns side by side: NumPy works on large ones without the GIL, on all processors at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from dask.system import CPU_COUNT

V = TypeVar("V")

#: Rows from which it is worth a few threads.
MANY: Final = 500_000


def abreast(work: Callable[[str], V], columns: Iterable[str], rows: int) -> dict[str, V]:
    """What is made of each column, by its name.

    Args:
        work: makes it; on several threads at once if there are many rows.
        columns: their names.
        rows: how many rows each has.
    """
    names = list(columns)
    if rows < MANY or CPU_COUNT < 2:
        return {name: work(name) for name in names}
    with ThreadPoolExecutor(CPU_COUNT, "stageprof-columns") as pool:
        return dict(zip(names, pool.map(work, names), strict=True))
