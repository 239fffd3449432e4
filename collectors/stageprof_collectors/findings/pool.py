"""Tasks in the processes of a local scheduler's pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stageprof_runtime.event import POOLED

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def in_pool(recording: Recording) -> bool:
    """Whether any task ran there."""
    store = recording.store
    where = {store.strings[i] for i in np.unique(store.table("run")["worker"]).tolist()}
    return any(name.startswith(POOLED) for name in where)
