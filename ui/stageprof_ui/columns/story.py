"""What each task waited for, in columns that pack well; and what its whole graph took before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import worked
from stageprof_collectors.account.timeline import LOCAL, Columns
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage
from stageprof_ui.columns.packing import rough, steps

Numbers = NDArray[np.int16] | NDArray[np.int32]

#: Up to so many tasks their stories go to the browser.
MOST: Final = 300_000
#: Durations that are told and not drawn.
_DURATIONS: Final = ("sent", "fetched", "waited", "told", "cpu", "ran")
#: Up to so many needs of tasks do.
NEEDS: Final = 300_000
#: What is known of a run, as `browser/story.js` reads it: all; of a worker that tells nothing how
#: long its function took; that it was given away; of a local scheduler's when a thread took it.
TOLD, HEARD, UNTOLD, POOLED = range(4)
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
        waited: until a thread took it; all the time before its function if no more is known.
        told: from its end until the scheduler knew.
        cpu: CPU time of its function.
        ran: how long that ran; all the time with its worker if that is not known.
        known: uint8, which of these is known.
        graph: int16, or int32 if there are that many; index of its graph, -1 if unknown.
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
    known: NDArray[np.uint8]
    graph: Numbers
    need_from: NDArray[np.uint32]
    need: NDArray[np.int32]

    def columns(self) -> dict[str, Any]:
        """As `browser/story.js` reads them: one row, each cell of which is an array."""
        told = {name: [rough(getattr(self, name))] for name in _DURATIONS}
        grown = {name: [steps(getattr(self, name))] for name in ("need_from", "need")}
        return told | grown | {"known": [self.known], "graph": [self.graph]}

    @classmethod
    def none(cls) -> Self:
        """Those of no task."""
        none, known = np.zeros(0, np.uint32), np.zeros(0, np.uint8)
        durations = dict.fromkeys(_DURATIONS, none)
        whole = np.zeros(0, np.int32)
        return cls(**durations, known=known, graph=whole, need_from=none, need=whole)


def stories(recording: Recording, unit_ns: int, *, most: int = MOST) -> Stories:
    """The stories of all tasks, if they are not more than `most`."""
    runs = recording.timeline.runs
    if len(runs["run"]) > most:
        return Stories.none()
    known, need_from, need = _known(runs), *_needs(recording)
    durations = _told(runs, known, recording.timeline.region.stop, unit_ns)
    graph = _graphs(recording)
    return Stories(**durations, known=known, graph=graph, need_from=need_from, need=need)


def one(recording: Recording, unit_ns: int, run: int) -> Stories:
    """The story of one task, by its row of their table; without its needs."""
    runs = {name: column[run : run + 1] for name, column in recording.timeline.runs.items()}
    known, graph = _known(runs), _graphs(recording)[run : run + 1]
    durations = _told(runs, known, recording.timeline.region.stop, unit_ns)
    none = Stories.none()
    return Stories(**durations, known=known, graph=graph, need_from=none.need_from, need=none.need)


def _known(runs: Columns) -> NDArray[np.uint8]:
    """What is known of each run."""
    seen = np.where(runs["run"] >= LOCAL, POOLED, TOLD)
    found = np.where(runs["seen"] == 1, seen, np.where(worked(runs), HEARD, UNTOLD))
    return found.astype(np.uint8)


def _told(
    runs: Columns, known: NDArray[np.uint8], end: int, unit_ns: int
) -> dict[str, NDArray[np.uint32]]:
    """The durations of stories by their name; what had not ended when nobody told goes to `end`."""
    ended, whole = runs["finished"] > 0, known == TOLD
    before = np.where(whole, runs["ready"], runs["assigned"])
    stop = np.where((known == UNTOLD) & ~ended, end, runs["stop"])
    durations = (
        np.where(whole, runs["received"] - runs["assigned"], 0),
        np.where(whole, runs["ready"] - runs["received"], 0),
        runs["start"] - before,
        np.where(ended, runs["finished"] - runs["stop"], 0),
        runs["cpu"],
        stop - runs["start"],
    )
    units = (np.clip(ns // unit_ns, 0, 2**32 - 1).astype(np.uint32) for ns in durations)
    return dict(zip(_DURATIONS, units, strict=True))


def _needs(recording: Recording) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    needs = recording.timeline.depends
    if len(needs.on) > NEEDS:
        return np.zeros(0, np.uint32), np.zeros(0, np.int32)
    return needs.first.astype(np.uint32), needs.on.astype(np.int32)


def _graphs(recording: Recording) -> Numbers:
    """Index in `computations()` of each run's graph."""
    found = recording.timeline.graph_rows
    few = found.max(initial=0) < 2**15
    return found.astype(np.int16) if few else found.astype(np.int32)


def graphs(recording: Recording) -> list[Graph]:
    """What of the wall time each graph took before its first task."""
    rows = recording.handed_over[["file", "line", "start_s", "first_task_s"]].to_dict("records")
    return [_graph(recording, row) for row in rows]


def _graph(recording: Recording, row: dict[Any, Any]) -> Graph:
    line = safe(at(row["file"], row["line"]), limit=200)
    begin = recording.timeline.region.start + round(row["start_s"] * 1e9)
    wait = row["first_task_s"]
    took = recording.walls.between(begin, begin + round(wait * 1e9)) if math.isfinite(wait) else {}
    before = [(str(stage), took.get(f"{stage}_s", 0.0)) for stage in _BEFORE]
    return Graph(line, [part for part in before if part[1] > 0])
