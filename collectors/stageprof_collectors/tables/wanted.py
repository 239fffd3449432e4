"""Results that a client asked for, and what they were put together of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.groups import Row

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: How the names of tasks begin that put a result together.
_JOINS: Final = ("finalize", "repartitiontofewer")


def wanted(recording: Recording) -> Ints:
    """Rows of the runs whose results a client had asked for."""
    table = recording.store.table("want")
    rows = recording.timeline.runs_of(table["run"], table["place"])
    return np.unique(rows[rows >= 0])


def source(recording: Recording, row: int) -> int:
    """The run whose result a run's is; of what was put together, that of the largest piece."""
    runs, needs = recording.timeline.runs, recording.timeline.depends
    on = needs.on[needs.first[row] : needs.first[row + 1]]
    prefix = recording.groups.rows[int(recording.groups.of_run[row])].prefix
    if not prefix.startswith(_JOINS) or not len(on):
        return row
    return int(on[np.argmax(runs["nbytes"][on])])


def largest(recording: Recording) -> tuple[Row, str]:
    """The layer of the largest result, or of its pieces, and the result's type."""
    runs, groups, asked = recording.timeline.runs, recording.groups, wanted(recording)
    if not len(asked):
        return groups.rows[0], ""
    row = int(asked[np.argmax(runs["nbytes"][asked])])
    kind = recording.store.strings[int(runs["type"][row])]
    return groups.rows[int(groups.of_run[source(recording, row)])], kind
