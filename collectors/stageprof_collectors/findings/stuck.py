"""The graph of which a scheduler had made no tasks, or run hardly any, when the recording ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.account.graph import Graph, Submit, untaken

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: A graph is under way for less, seconds, at the end of many a recording that was cut short.
LONG_S: Final = 5.0
#: Of the time from its hand-over on, in what was given up while it was taken in.
_MOST: Final = 0.5
#: Of its tasks: so few, where more is not known of what they do.
_FEW: Final = 0.1


class Stuck(NamedTuple):
    """The line that handed a graph over, and how long it took to be taken in, or had by the end.

    `tasks`: that it holds, of which `begun` had begun; 0 if the scheduler had made none.
    """

    file: str
    line: int
    seconds: float
    tasks: int = 0
    begun: int = 0


def stuck(recording: Recording) -> Stuck | None:
    """The last graph, if the recording ended before its tasks could be what took the time."""
    end, last = recording.timeline.region.stop, untaken(recording.timeline)
    if last is not None:
        took_s = (end - last.t) / 1e9
        return _told(recording, last, took_s) if took_s >= LONG_S else None
    graph = max(recording.timeline.graphs, key=lambda graph: graph.submitted, default=None)
    if graph is None or graph.submit is None:
        return None
    took_s, whole_s = (graph.taken - graph.submit.t) / 1e9, (end - graph.submit.t) / 1e9
    if took_s < max(LONG_S, _MOST * whole_s):
        return None
    begun = _begun(recording, graph)
    few = begun < _FEW * graph.tasks
    return _told(recording, graph.submit, took_s, graph.tasks, begun) if few else None


def _begun(recording: Recording, graph: Graph) -> int:
    timeline = recording.timeline
    return int((timeline.graph_rows == timeline.graphs.index(graph)).sum())


def _told(recording: Recording, at: Submit, took_s: float, tasks: int = 0, begun: int = 0) -> Stuck:
    return Stuck(recording.store.strings[at.file], at.line, took_s, tasks, begun)
