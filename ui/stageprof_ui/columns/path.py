"""The critical path as a row of its own, and where it ran: a row for each role."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.recording import Recording
from stageprof_ui.columns.boxes import Pile, Row

Names = NDArray[np.str_]


def path(pile: Pile, recording: Recording) -> None:
    """Add these rows."""
    steps = recording.path_steps
    columns = [(s.start, s.stop, s.what.step, s.what.place, s.run) for s in steps]
    start, stop, step, place, run = np.array(columns or [(0,) * 5][:0], np.int64).reshape(-1, 5).T
    pile.add(Row("critical path", -1, "path"), start, stop, step, run=run)
    role = _roles(recording, start, stop, place, run)
    for name in ("client", "scheduler", "worker"):
        mine = role == name
        pile.add(Row(name, -1, "path here"), start[mine], stop[mine], step[mine], run=run[mine])


def _roles(recording: Recording, start: Ints, stop: Ints, place: Ints, run: Ints) -> Names:
    """Where each step ran.

    A task's function is with the workers, also where a local scheduler has these in the client's
    own process. What ran where nobody told of it (place -1) was a worker's: it alone may be silent.
    """
    runs, within = recording.timeline.runs, run >= 0
    at = run[within]
    own = (runs["start"][at] <= start[within]) & (stop[within] <= runs["stop"][at])
    within[within] = own & (runs["wplace"][at] == place[within])
    roles = np.array([p.role for p in recording.store.places] or [""])
    return np.where(within | (place < 0), "worker", roles[np.maximum(place, 0)])
