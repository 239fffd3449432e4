"""Numbers that places told: those of a name, without what no number of ours can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.storage.columns import Ints

if TYPE_CHECKING:
    from stageprof_collectors.storage.store import Store

#: No size, share or count reaches this; nor do not-a-number and the infinite lie below it.
_BEYOND: Final = 2.0**62


def sound(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the values can be."""
    found: NDArray[np.bool_] = np.abs(values) < _BEYOND
    return found


def rows_of(store: Store, name: str) -> Ints:
    """Rows of the table `sample` that are of this name and hold a number that can be."""
    table, strings = store.table("sample"), store.strings  # in which each text is once
    number = strings.index(name) if name in strings else -1
    return np.flatnonzero((table["name"] == number) & sound(table["value"]))


def told(store: Store, name: str) -> dict[int, float]:
    """What each place (by its index) told last under a name."""
    table, rows = store.table("sample"), rows_of(store, name)
    return dict(zip(table["place"][rows].tolist(), table["value"][rows].tolist(), strict=True))


def usable(store: Store) -> dict[int, float]:
    """CPUs that each worker (the index of its place) may use; its machine's if it told no more."""
    every, allowed = told(store, "worker.cpus"), told(store, "worker.cpus_usable")
    return every | {place: number for place, number in allowed.items() if number}
