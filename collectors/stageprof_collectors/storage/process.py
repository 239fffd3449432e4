"""Which places are parts of one process: a client, its tasks and its scheduler may share one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stageprof_collectors.storage.rows import Ints
from stageprof_runtime.event import Place


def processes(places: Iterable[Place]) -> Ints:
    """The number of each place's process, in the order in which they are first met.

    Where there is no place it is `[0]`, so that place -1 may be looked up.
    """
    numbers: dict[tuple[str, int], int] = {}
    found = [numbers.setdefault((p.host, p.pid), len(numbers)) for p in places]
    return np.array(found or [0], np.int64)
