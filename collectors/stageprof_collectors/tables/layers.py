"""The tables of layers and of user lines: tasks, and seconds of every stage.

`blame` says whose each piece of time is; here it is summed up. What belongs to no layer is a row of
its own, named "": graphs none of whose tasks ran, data moved by the user (scatter), what of a step
cannot be told apart, time that no step explains.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.account.blame import Blame, Piece
from stageprof_collectors.account.busy import busy
from stageprof_collectors.account.groups import Groups
from stageprof_collectors.account.tally import Tally
from stageprof_runtime.stage import SIX, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_SECONDS: Final = ["wall_s", *(f"{s}_s" for s in SIX), "before_first_task_s"]
_COLUMNS: Final = ["layer", "prefix", "tasks", "file", "line", *_SECONDS, "bytes"]
_LINE_COLUMNS: Final = ["file", "line", "layers", "tasks", *_SECONDS, "bytes"]


def layers(recording: Recording) -> pd.DataFrame:
    """See `Recording.layers`."""
    groups = recording.groups
    blame = Blame(recording.timeline, recording.lanes, groups)
    columns = _on_path(recording, blame)
    for stage in SIX:
        columns[f"{stage}_s"] = defaultdict(float)
    for step, rows in busy(recording, blame).items():
        _add(columns[f"{stage_of(step)}_s"], rows)
    nbytes = np.bincount(
        groups.of_run, weights=recording.timeline.runs["nbytes"], minlength=len(groups.rows)
    )
    found = [_row(groups, i, columns, int(nbytes[i])) for i in range(len(groups.rows))]
    frame = pd.DataFrame([row for row in found if row], columns=_COLUMNS)
    order = ["last", "wall_s", "execution_s"]
    frame["last"] = frame["layer"] == ""
    frame = frame.sort_values(order, ascending=[True, False, False], ignore_index=True)
    return frame.drop(columns="last")


def lines(table: pd.DataFrame) -> pd.DataFrame:
    """See `Recording.lines`; made from the table of layers."""
    keyed = table.assign(layers=(table["layer"] != "").astype(int)).groupby(["file", "line"])
    frame = keyed[["layers", "tasks", *_SECONDS, "bytes"]].sum().reset_index()
    frame["last"] = frame["file"] == ""
    frame = frame.sort_values(["last", "wall_s"], ascending=[True, False], ignore_index=True)
    return frame[_LINE_COLUMNS]


def _row(
    groups: Groups, i: int, columns: dict[str, defaultdict[int, float]], nbytes: int
) -> dict[str, Any]:
    """One row of the table; empty if there is nothing to say of it."""
    row, tasks = groups.rows[i], groups.tasks(i)
    seconds = {name: columns[name][i] / 1e9 for name in _SECONDS}
    if not tasks and not any(seconds.values()):
        return {}
    return {**row._asdict(), "tasks": tasks, **seconds, "bytes": nbytes}


def _on_path(recording: Recording, blame: Blame) -> dict[str, defaultdict[int, float]]:
    """Ns of the critical path by row, and what of them passed before the first task of a graph."""
    wall, before = Tally(), Tally()
    for start, stop, (step, place, label), run in recording.path_steps:
        if stage_of(step) == Stage.OUTSIDE:
            continue
        piece = Piece(step, place, start, stop, label, run)
        blame.give(wall, piece)
        graph = blame.graph_of(piece)
        first = int(blame.graphs.first[graph]) if graph >= 0 else stop
        if start < first:
            # Shared as the whole piece is: no row has more before its tasks than in all.
            part = Tally()
            blame.give(part, piece)
            before.add(part, (min(stop, first) - start) / piece.ns)
    found = {"before_first_task_s": before.settled(blame, wall), "wall_s": wall.settled(blame)}
    return {name: defaultdict(float, rows) for name, rows in found.items()}


def _add(into: defaultdict[int, float], rows: dict[int, float]) -> None:
    for row, ns in rows.items():
        into[row] += ns
