"""The table of computations: one row per graph handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.account.by_graph import busy_seconds
from stageprof_collectors.account.graph import Graph
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.storage.rows import Rows
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def computations(recording: Recording) -> pd.DataFrame:
    """See `Recording.computations`.

    Columns: client, file, line, start_s (the call began),
    submitted_s, first_task_s (from the call to the first task's start), stop_s, duration_s,
    tasks (run for it), graph_tasks, wanted, graph_bytes, and `<stage>_s` for the eight lines.
    """
    codes, numbers = pd.factorize(recording.owners)
    code = {number: i for i, number in enumerate(numbers.tolist())}
    owned = Rows(np.where(ran(recording.timeline.runs), codes, -1))
    rows = [
        _row(recording, graph, owned.of(code.get(graph.number, -1)))
        for graph in recording.timeline.graphs
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def with_work(recording: Recording, table: pd.DataFrame) -> pd.DataFrame:
    """The same with busy_s, seconds of work for each in all processes, before the eight lines."""
    found = table.copy()
    found.insert(_COLUMNS.index(f"{Stage.CONSTRUCTION}_s"), "busy_s", busy_seconds(recording))
    return found


_COLUMNS = [
    "client", "file", "line", "start_s", "submitted_s", "first_task_s", "stop_s", "duration_s",
    "tasks", "graph_tasks", "wanted", "graph_bytes", *(f"{stage}_s" for stage in Stage),
]  # fmt: skip


def _row(recording: Recording, graph: Graph, mine: Ints) -> dict[str, Any]:
    """Of a graph, and what ran that a graph of its number led to at any scheduler."""
    timeline, strings = recording.timeline, recording.store.strings
    runs, origin = timeline.runs, timeline.region.start
    mine = mine[runs["place"][mine] == graph.place]
    submit, begin = graph.submit, graph.begun
    # By another clock a graph may arrive, and be done, a little before it was handed over.
    stop = max(int(runs["stop"][mine].max()) if len(mine) else 0, graph.taken, begin)
    first = max(int(runs["start"][mine].min()), begin) if len(mine) else 0
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
        **recording.walls.between(begin, stop),
    }
