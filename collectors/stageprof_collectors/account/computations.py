"""The table of computations: one row per graph handed over."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stageprof_collectors.account.graph import Graph
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.storage.rows import Rows
from stageprof_runtime.stage import Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def computations(recording: Recording) -> pd.DataFrame:
    """See `Recording.computations`.

    Columns: client, file, line, start_s (the call began),
    submitted_s, first_task_s (from the call to the first task's start), stop_s, duration_s,
    tasks (run for it), graph_tasks, wanted, graph_bytes, and `<stage>_s` for the eight lines.
    """
    codes, numbers = pd.factorize(recording.owners)
    owned, code = Rows(codes), {number: i for i, number in enumerate(numbers.tolist())}
    rows = [
        _row(recording, graph, owned.of(code.get(graph.number, -1)))
        for graph in recording.timeline.graphs
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = [
    "client", "file", "line", "start_s", "submitted_s", "first_task_s", "stop_s", "duration_s",
    "tasks", "graph_tasks", "wanted", "graph_bytes", *(f"{stage}_s" for stage in Stage),
]  # fmt: skip


def _row(recording: Recording, graph: Graph, mine: Ints) -> dict[str, Any]:
    """Of a graph, and the runs that a graph of its number led to at any scheduler."""
    timeline, strings = recording.timeline, recording.store.strings
    runs, origin = timeline.runs, timeline.region.start
    mine = mine[runs["place"][mine] == graph.place]
    submit, begin = graph.submit, graph.begun
    stop = max(int(runs["stop"][mine].max()) if len(mine) else 0, graph.taken)
    first = int(runs["start"][mine].min()) if len(mine) else 0
    return {
        "client": strings[graph.client],
        "file": strings[submit.file] if submit else "",
        "line": submit.line if submit else 0,
        "start_s": (begin - origin) / 1e9,
        "submitted_s": ((submit.t if submit else graph.arrived) - origin) / 1e9,
        "first_task_s": (first - begin) / 1e9 if first else np.nan,
        "stop_s": (stop - origin) / 1e9,
        "duration_s": (stop - begin) / 1e9,
        "tasks": len(mine),
        "graph_tasks": graph.tasks,
        "wanted": graph.wanted,
        "graph_bytes": max(submit.nbytes, 0) if submit else 0,
        **wall_between(recording, begin, stop),
    }


def wall_between(recording: Recording, begin: int, stop: int) -> dict[str, float]:
    """Seconds of each line of the blocking account between two instants (ns)."""
    seconds = {f"{stage}_s": 0.0 for stage in Stage}
    steps = recording.path_steps
    first = max(0, bisect_right(steps, begin, key=attrgetter("start")) - 1)
    for i in range(first, len(steps)):  # a slice would copy the rest for each graph
        step = steps[i]
        if step.start >= stop:
            break
        a, b = max(step.start, begin), min(step.stop, stop)
        if b > a:
            seconds[f"{stage_of(step.what.step)}_s"] += (b - a) / 1e9
    return seconds


__all__ = ["LOCAL", "computations", "wall_between"]
