"""What is loaded and not used, by the layer that ran: rows of UNUSED.

Dask fuses a layer that loads with those above it. So a source has a row for each layer with which
it may have been, in their order; the first that ran has loaded it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.storage.rows import Rows
from stageprof_runtime.loaded import SLICE, STORED

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Kinds of rows that name a source, which may have several.
_OF_SOURCES: Final = (SLICE, STORED)
#: Tasks behind one another that pass on what a call gave.
_PASSED_ON: Final = 2
#: What Dask puts before the name of a layer to name what that loads from.
_SOURCE: Final = "original-"


@dataclass(frozen=True)
class Loading:
    """What one source is loaded for.

    Attributes:
        layer: the layer that ran, which may be fused with others.
        how, label, used, total: as in UNUSED.
        by: the function that reads; of an array the layer that loads.
        rows: of `Timeline.runs`.
    """

    layer: str
    how: str
    label: str
    by: str
    used: int
    total: int
    rows: Ints


def loadings(recording: Recording) -> Iterator[Loading]:
    """What the plans of a recording load and do not use, as far as it ran; each layer once."""
    table, strings = recording.store.table("unused"), recording.store.strings
    if not len(table["t"]):
        return
    names = ("t", "name", "how", "label", "variable", "count", "total")
    plans: set[tuple[int, int, int]] = set()
    seen: set[tuple[int, int, str]] = set()
    layers = Ran(recording)
    for t, name, how, label, by, used, total in zip(
        *(table[n].tolist() for n in names), strict=True
    ):
        if (t, how, by) in plans:
            continue
        layer, rows = layers.of(strings[name])
        if len(rows):
            if strings[how] in _OF_SOURCES and strings[by]:
                plans.add((t, how, by))
            elif strings[by]:
                rows = _called(recording, rows, strings[by])
            if (how, by, layer) not in seen:
                seen.add((how, by, layer))
                told = (layer, strings[how], strings[label], strings[by], used, total)
                yield Loading(*told, rows)


def _called(recording: Recording, rows: Ints, by: str) -> Ints:
    """The calls that made what these runs pass on (`from_delayed`); the runs, if they made it."""
    needs, found = recording.timeline.depends, rows
    for _ in range(_PASSED_ON):
        found = np.unique(needs.on[np.isin(needs.user, found)])
        calls: Ints = found[recording.prefixes[found] == by]
        if len(calls):
            return calls
    return rows


class Ran:
    """The layers that ran, by what a plan calls them."""

    def __init__(self, recording: Recording) -> None:
        layered, runs = recording.layered, recording.timeline.runs
        self._layered = layered
        self._rows = Rows(np.where(ran(runs), layered.of, -1))
        self._took = np.bincount(layered.of, runs["stop"] - runs["start"], len(layered.names))
        #: indices of layers by the last word of their names, which fusing keeps
        self._ends: defaultdict[str, list[int]] = defaultdict(list)
        for i, name in enumerate(layered.names):
            self._ends[_end(name)].append(i)

    def of(self, name: str) -> tuple[str, Ints]:
        """The layer that ran a layer of the plan, and its runs.

        Fused, it leaves behind tasks of its own name that only stand for the others.
        """
        names = self._layered.names
        found = [i for i in self._ends.get(_end(name), ()) if _is(names[i], name)]
        if not found:
            return "", np.zeros(0, np.int64)
        most = max(found, key=lambda i: float(self._took[i]))
        return names[most], self._rows.of(most)


def _end(name: str) -> str:
    return name.rpartition("-")[2]


def _is(ran: str, name: str) -> bool:
    fused = ran.endswith(f"-{name}") and not ran.startswith(_SOURCE)
    return ran == name or fused
