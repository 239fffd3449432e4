"""The table of layers: tasks, the user's line, and seconds of every stage.

Execution and communication are measured per task and belong to the task's layer. What is done
for a graph as a whole (construction by a line, dumps, ordering, transitions) is shared out over
the line's or the graph's layers by their tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stageprof_collectors.lines import Lines
from stageprof_collectors.tasks import names
from stageprof_runtime.event import SAMPLED
from stageprof_runtime.stage import SIX, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_BY_TASKS = (Stage.OPTIMIZATION, Stage.SERIALIZATION, Stage.SCHEDULING)


def layers(recording: Recording) -> pd.DataFrame:
    """See `Recording.layers`.

    Columns: layer, prefix, tasks, file, line, wall_s (on the critical
    path), construction_s, ..., execution_s (busy seconds), bytes.
    """
    frame = _per_task(recording)
    if not len(frame):
        return pd.DataFrame(columns=_COLUMNS)
    keyed = frame.groupby(["layer", "prefix", "file", "line"], sort=False, as_index=False)
    out = keyed.sum()
    out["construction_s"] = _construction(recording, out)
    for stage in _BY_TASKS:
        out[f"{stage}_s"] = recording.stages()["busy_s"][str(stage)] * out.tasks / out.tasks.sum()
    return out[_COLUMNS].sort_values(["wall_s", "execution_s"], ascending=False, ignore_index=True)


_COLUMNS = ["layer", "prefix", "tasks", "file", "line", "wall_s", *(f"{s}_s" for s in SIX), "bytes"]


def _per_task(recording: Recording) -> pd.DataFrame:
    runs = recording.timeline.runs
    keys = recording.store.keys(runs["key"])
    layer, prefix = names(keys)
    lines = Lines(recording.store)
    known = {name: lines.of(name) for name in set(layer)}
    # A name that is one key (delayed, futures) is shown with its prefix: a loop is one layer.
    alone = {p for p, key in zip(prefix, keys, strict=True) if key in known}
    shown = [p if p in alone else name for name, p in zip(layer, prefix, strict=True)]
    return pd.DataFrame(
        {
            "layer": shown,
            "prefix": prefix,
            "file": [known[name].file for name in layer],
            "line": [known[name].line for name in layer],
            "tasks": 1,
            "wall_s": _on_path(recording),
            "execution_s": (runs["stop"] - runs["start"]) / 1e9,
            "communication_s": (runs["ready"] - runs["assigned"]) / 1e9,
            "bytes": runs["nbytes"],
        }
    )


def _on_path(recording: Recording) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds of the critical path that belong to each run."""
    seconds = np.zeros(len(recording.timeline.runs["run"]))
    steps = [s for s in recording.path_steps if s.run >= 0]
    np.add.at(seconds, [s.run for s in steps], [(s.stop - s.start) / 1e9 for s in steps])
    return seconds


def _construction(recording: Recording, out: pd.DataFrame) -> pd.Series[float]:
    """Seconds seen at each user line, shared over the layers that it made by their tasks."""
    spans, strings = recording.timeline.spans, recording.store.strings
    seen = spans["nbytes"] == SAMPLED
    seconds: dict[str, float] = {}
    columns = (spans[n][seen].tolist() for n in ("step", "label", "start", "stop"))
    for step, label, start, stop in zip(*columns, strict=True):
        if stage_of(step) == Stage.CONSTRUCTION:
            seconds[strings[label]] = seconds.get(strings[label], 0.0) + (stop - start) / 1e9
    line = out.file + ":" + out.line.astype(str)
    share = out.tasks / out.tasks.groupby(line).transform("sum")
    found: pd.Series[float] = line.map(seconds).fillna(0.0) * share
    return found
