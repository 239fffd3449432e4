"""The table of computations: one row per graph handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stageprof_collectors.graph import Graph
from stageprof_collectors.timeline import LOCAL, NO_CAUSE, Ints
from stageprof_runtime.stage import Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def computations(recording: Recording) -> pd.DataFrame:
    """See `Recording.computations`.

    Columns: client, file, line, start_s (the call began),
    submitted_s, first_task_s (from the call to the first task's start), stop_s, duration_s,
    tasks (run for it), graph_tasks, wanted, graph_bytes, and `<stage>_s` for the eight lines.
    """
    owner = recording.owners
    rows = [_row(recording, graph, owner) for graph in recording.timeline.graphs]
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = [
    "client", "file", "line", "start_s", "submitted_s", "first_task_s", "stop_s", "duration_s",
    "tasks", "graph_tasks", "wanted", "graph_bytes", *(f"{stage}_s" for stage in Stage),
]  # fmt: skip


def _row(recording: Recording, graph: Graph, owner: Ints) -> dict[str, Any]:
    timeline, strings = recording.timeline, recording.store.strings
    runs, origin = timeline.runs, timeline.region.start
    mine = (owner == graph.number) & (runs["place"] == graph.place)
    submit, begin = graph.submit, graph.begun
    stop = max(int(runs["stop"][mine].max()) if mine.any() else 0, graph.taken)
    first = int(runs["start"][mine].min()) if mine.any() else 0
    return {
        "client": strings[graph.client],
        "file": strings[submit.file] if submit else "",
        "line": submit.line if submit else 0,
        "start_s": (begin - origin) / 1e9,
        "submitted_s": ((submit.t if submit else graph.arrived) - origin) / 1e9,
        "first_task_s": (first - begin) / 1e9 if first else np.nan,
        "stop_s": (stop - origin) / 1e9,
        "duration_s": (stop - begin) / 1e9,
        "tasks": int(mine.sum()),
        "graph_tasks": graph.tasks,
        "wanted": graph.wanted,
        "graph_bytes": max(submit.nbytes, 0) if submit else 0,
        **wall_between(recording, begin, stop),
    }


def wall_between(recording: Recording, begin: int, stop: int) -> dict[str, float]:
    """Seconds of each line of the blocking account between two instants (ns)."""
    seconds = {f"{stage}_s": 0.0 for stage in Stage}
    for step in recording.path_steps:
        a, b = max(step.start, begin), min(step.stop, stop)
        if b > a:
            seconds[f"{stage_of(step.what.step)}_s"] += (b - a) / 1e9
    return seconds


def graph_of_runs(runs: dict[str, Ints]) -> Ints:
    """Number of the graph that led to each run, through the runs that led to it; -1 if unknown."""
    index: dict[tuple[int, int], int] = {}
    owner = np.full(len(runs["run"]), -1, np.int64)
    columns = (runs[name].tolist() for name in ("place", "run", "cause"))
    for i, (place, run, cause) in enumerate(zip(*columns, strict=True)):
        index[place, run] = i
        if cause == NO_CAUSE:
            continue
        owner[i] = (
            -1 - cause
            if cause < 0
            else owner[index[place, cause]]
            if (place, cause) in index
            else -1
        )
    return owner


__all__ = ["LOCAL", "computations", "graph_of_runs", "wall_between"]
