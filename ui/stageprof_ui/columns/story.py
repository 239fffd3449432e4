"""What each task waited for, in columns that pack well; and what its whole graph took before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Columns
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage
from stageprof_ui.columns.packing import rough, steps

#: Up to so many tasks their stories go to the browser.
MOST: Final = 300_000
#: Durations that are told and not drawn.
_DURATIONS: Final = ("sent", "fetched", "waited", "told", "cpu", "ran")
#: Up to so many needs of tasks do.
NEEDS: Final = 300_000
#: What happens to a graph before its tasks.
_BEFORE: Final = (
    Stage.CONSTRUCTION,
    Stage.OPTIMIZATION,
    Stage.SERIALIZATION,
    Stage.COMMUNICATION,
    Stage.SCHEDULING,
)


@dataclass(frozen=True)
class Graph:
    """Of one graph the line that handed it over, and seconds by stage before its first task."""

    line: str
    before: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Stories:
    """One entry per row of the table of tasks; all empty if they are too many.

    Attributes:
        sent: uint32 units from the scheduler's decision to the worker's hearing of it.
        fetched: until its inputs were there.
        waited: until a thread took it.
        told: from its end until the scheduler knew.
        cpu: CPU time of its function.
        ran: how long that ran.
        graph: int16, index of its graph; -1 if unknown.
        need_from: uint32, one more than tasks: task i needed the results of the tasks
            `need[need_from[i]:need_from[i + 1]]`; both empty if they are too many.
        need: int32.
    """

    sent: NDArray[np.uint32]
    fetched: NDArray[np.uint32]
    waited: NDArray[np.uint32]
    told: NDArray[np.uint32]
    cpu: NDArray[np.uint32]
    ran: NDArray[np.uint32]
    graph: NDArray[np.int16]
    need_from: NDArray[np.uint32]
    need: NDArray[np.int32]

    def columns(self) -> dict[str, Any]:
        """As `browser/story.js` reads them: one row, each cell of which is an array."""
        told = {name: [rough(getattr(self, name))] for name in _DURATIONS}
        grown = {name: [steps(getattr(self, name))] for name in ("need_from", "need")}
        return told | grown | {"graph": [self.graph]}


def stories(recording: Recording, unit_ns: int, *, most: int = MOST) -> Stories:
    """The stories of all tasks, if they are not more than `most`."""
    runs = recording.timeline.runs
    n = len(runs["run"])
    if n > most:
        none = np.zeros(0, np.uint32)
        graph, need = np.zeros(0, np.int16), np.zeros(0, np.int32)
        return Stories(none, none, none, none, none, none, graph, none, need)

    need_from, need = _needs(recording)
    graph = _graphs(recording)
    return Stories(**_told(runs, unit_ns), graph=graph, need_from=need_from, need=need)


def one(recording: Recording, unit_ns: int, run: int) -> Stories:
    """The story of one task, by its row of their table; without its needs."""
    runs = {name: column[run : run + 1] for name, column in recording.timeline.runs.items()}
    graph = _graphs(recording)[run : run + 1]
    none, need = np.zeros(0, np.uint32), np.zeros(0, np.int32)
    return Stories(**_told(runs, unit_ns), graph=graph, need_from=none, need=need)


def _told(runs: Columns, unit_ns: int) -> dict[str, NDArray[np.uint32]]:
    """The durations of stories by their name."""
    ended = np.where(runs["finished"] > 0, runs["finished"] - runs["stop"], 0)
    durations = (
        runs["received"] - runs["assigned"],
        runs["ready"] - runs["received"],
        runs["start"] - runs["ready"],
        ended,
        runs["cpu"],
        runs["stop"] - runs["start"],
    )
    units = (np.clip(ns // unit_ns, 0, 2**32 - 1).astype(np.uint32) for ns in durations)
    return dict(zip(_DURATIONS, units, strict=True))


def _needs(recording: Recording) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    needs = recording.timeline.depends
    if len(needs.on) > NEEDS:
        return np.zeros(0, np.uint32), np.zeros(0, np.int32)
    return needs.first.astype(np.uint32), needs.on.astype(np.int32)


def _graphs(recording: Recording) -> NDArray[np.int16]:
    """Index in `computations()` of each run's graph."""
    found = recording.timeline.graph_rows
    return np.minimum(found, 2**15 - 1).astype(np.int16)


def graphs(recording: Recording) -> list[Graph]:
    """What of the wall time each graph took before its first task."""
    rows = recording.computations()[["file", "line", "start_s", "first_task_s"]].to_dict("records")
    return [_graph(recording, row) for row in rows]


def _graph(recording: Recording, row: dict[Any, Any]) -> Graph:
    line = safe(at(row["file"], row["line"]), limit=200)
    begin = recording.timeline.region.start + round(row["start_s"] * 1e9)
    wait = row["first_task_s"]
    took = recording.walls.between(begin, begin + round(wait * 1e9)) if math.isfinite(wait) else {}
    before = [(str(stage), took.get(f"{stage}_s", 0.0)) for stage in _BEFORE]
    return Graph(line, [part for part in before if part[1] > 0])
