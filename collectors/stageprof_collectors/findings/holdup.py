"""What tasks wait for that others have: a lock and the like of Dask's, or a worker's resource."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.text import number
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_STEP = STEP["wait.resource"]
#: "file:line Lock name"; in the file's and the lock's name may be anything.
_LABEL: Final = re.compile(r"(.*?):(\d+) (\S*) ?(.*)", re.DOTALL)


@dataclass
class Holdup:
    """One lock (event, queue, ...) as it is waited for at a line, or one resource of workers."""

    #: "Lock", "Event", ...; "" for a resource of workers
    kind: str
    name: str
    file: str = ""
    line: int = 0
    #: by run, an index, how long it waited, ns
    waited: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    #: how often
    times: int = 0
    #: of the critical path, ns
    cost: int = 0

    def add(self, run: int, ns: int) -> None:
        """A run waited so long."""
        self.waited[run] += ns
        self.times += 1

    @property
    def waited_ns(self) -> int:
        """How long all runs did together."""
        return sum(self.waited.values())

    @property
    def what(self) -> str:
        """As its user calls it."""
        name = f"`{self.name}`" if self.name else ""
        return f"{self.kind} {name}".strip()


def holdups(recording: Recording) -> list[Holdup]:
    """All that tasks were seen to wait for, what was waited for longest first."""
    found = [*_locks(recording), *_resources(recording)]
    return sorted(found, key=lambda holdup: -holdup.waited_ns)


def _locks(recording: Recording) -> list[Holdup]:
    lanes, strings = recording.lanes, recording.timeline.store.strings
    found: dict[int, Holdup] = {}
    for place in range(len(recording.store.places)):
        for thread in lanes.threads(place):
            lane = lanes.whole(place, thread, _STEP)
            runs = lanes.around(place, thread, lane)
            for (start, stop, what), run in zip(lane, runs, strict=True):
                if run >= 0:
                    one = found.setdefault(what.label, of_label(strings[what.label]))
                    one.add(run, stop - start)
    for step in recording.path_steps:
        if step.what.step == _STEP and step.what.label in found:
            found[step.what.label].cost += step.stop - step.start
    return list(found.values())


def of_label(label: str) -> Holdup:
    """What a label says that is waited for, and where."""
    found = _LABEL.fullmatch(label)
    if found is None:
        return Holdup("", "", label)
    file, line, kind, name = found.groups()
    return Holdup(kind, name, file, number(line))


def _resources(recording: Recording) -> list[Holdup]:
    t = recording.timeline
    found: dict[int, Holdup] = {}
    begin = t.runs["start"] - t.runs["ready"]
    for run, name in t.constrained.items():
        one = found.setdefault(name, Holdup("", t.store.strings[name]))
        one.add(run, max(0, int(begin[run])))
    for step in recording.path_steps:
        if step.what.step == _STEP and not step.what.label and step.run in t.constrained:
            found[t.constrained[step.run]].cost += step.stop - step.start
    return list(found.values())


def without(recording: Recording, holdup: Holdup) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """For each run what would stay of it, or of its wait for a resource, if it had not to wait."""
    runs = recording.timeline.runs
    left = np.ones(len(runs["run"]))
    rows = np.array(list(holdup.waited), np.int64)
    if not holdup.kind:
        left[rows] = 0.0
        return left
    took = np.maximum(runs["stop"] - runs["start"], 1)[rows]
    waited = np.array(list(holdup.waited.values()), np.int64)
    left[rows] = 1 - np.clip(waited / took, 0, 1)
    return left
