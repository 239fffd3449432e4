"""Results that a client asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording


def wanted(recording: Recording) -> Ints:
    """Rows of the runs whose results a client had asked for."""
    table = recording.store.table("want")
    rows = recording.timeline.runs_of(table["run"], table["place"])
    return np.unique(rows[rows >= 0])
