"""The graph of which a scheduler had not made tasks when the recording ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: A graph is under way for less, seconds, at the end of many a recording that was cut short.
LONG_S: Final = 5.0


class Untaken(NamedTuple):
    """The line that handed a graph over, and how long before the end that was."""

    file: str
    line: int
    seconds: float


def untaken(recording: Recording) -> Untaken | None:
    """The last graph, if it was handed over long before the end and is at no scheduler yet."""
    timeline = recording.timeline
    table = timeline.read("submit", "t")
    if not len(table["t"]):
        return None
    row = int(np.argmax(table["t"]))
    last = {name: int(column[row]) for name, column in table.items()}
    known = (graph.submit for graph in timeline.graphs)
    waited_s = (timeline.region.stop - last["t"]) / 1e9
    if waited_s < LONG_S or (last["place"], last["graph"]) in {
        (submit.place, submit.graph) for submit in known if submit
    }:
        return None
    return Untaken(recording.store.strings[last["file"]], last["line"], waited_s)
