"""Shuffles of the same data, done more than once in a recording."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from stageprof_collectors.account.exchange import Method, kind
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.tables.lines import UNKNOWN, Line
from stageprof_collectors.tables.tasks import layer_of
from stageprof_runtime.event import STATUS

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_MEMORY: Final = STATUS.index("memory")
#: The layer by which rows enter the shuffle of a join.
JOINING: Final = "hash-join-transfer"
#: The layers by which rows enter a shuffle.
_ENTRIES: Final = ("shuffle-transfer", JOINING, "group-")

#: A shuffle: the token in the names of its layers, and how often they had been run before.
Instance = tuple[str, int]


@dataclass(frozen=True)
class Repeated:
    """What was shuffled several times."""

    #: layers that were shuffled
    sources: frozenset[str]
    times: int
    #: rows of runs that were needed for the second time and later ones only
    again: Ints
    #: bytes of what went in, of all times but the first
    nbytes: int
    #: the layer by which rows entered, if it was the same each time; "" else
    entry: str
    #: whether it was shuffled for joins
    joins: bool
    #: the line that made the shuffle, or what was shuffled
    line: Line


class Reshuffles:
    """The shuffles of data frames of one recording."""

    def __init__(self, recording: Recording) -> None:
        store, runs = recording.store, recording.timeline.runs
        self._recording = recording
        keys = pd.Series(store.keys(runs["key"]), dtype=object)
        self._layers = [layer_of(key) for key in keys]
        #: how often each run's key had been made before; a run that was lost or stolen made none
        self._before: Ints = _done_before(keys, runs["status"] == _MEMORY)
        self._is_local = runs["run"] >= LOCAL

    @cached_property
    def all(self) -> list[Repeated]:
        """What was shuffled more than once."""
        by_source: defaultdict[frozenset[str], list[Instance]] = defaultdict(list)
        for instance, rows in self._instances.items():
            sources = self._sources(rows)
            if sources:
                by_source[sources].append(instance)
        several = {s: found for s, found in by_source.items() if len(found) > 1}
        return [self._repeated(sources, found) for sources, found in several.items()]

    @cached_property
    def _instances(self) -> dict[Instance, list[int]]:
        """Rows of each shuffle, in the order in which shuffles began."""
        wanted = {(method, False) for method in Method}
        shuffling = {name for name in set(self._layers) if kind(name) in wanted}
        found: defaultdict[Instance, list[int]] = defaultdict(list)
        for row, (layer, before) in enumerate(
            zip(self._layers, self._before.tolist(), strict=True)
        ):
            if layer in shuffling and not self._is_local[row]:
                found[layer.rpartition("-")[2], before].append(row)
        return found

    def _sources(self, rows: list[int]) -> frozenset[str]:
        """The layers that went in; none if these only read again what had been exchanged before."""
        entries = [row for row in rows if self._layers[row].startswith(_ENTRIES)]
        mine = set(rows)
        found = {on for row in entries for on in self._on(row) if on not in mine}
        return frozenset(self._layers[on] for on in found)

    def _inputs(self, rows: list[int]) -> set[int]:
        """Runs that a shuffle needed and that are not of it."""
        mine = set(rows)
        return {on for row in rows for on in self._on(row) if on not in mine}

    def _on(self, row: int) -> list[int]:
        needs = self._recording.timeline.depends
        found: list[int] = needs.on[needs.first[row] : needs.first[row + 1]].tolist()
        return found

    def _repeated(self, sources: frozenset[str], instances: list[Instance]) -> Repeated:
        later = [row for instance in instances[1:] for row in self._instances[instance]]
        inputs = self._inputs(later)
        nbytes = int(self._recording.timeline.runs["nbytes"][sorted(inputs)].sum())
        again = np.array(sorted({*later, *self._made_again(inputs)}), np.int64)
        first = self._instances[instances[0]]
        names = [*(self._layers[row] for row in first[:1]), *sorted(sources)]
        same = len({token for token, _ in instances}) == 1
        entry = next((self._layers[i] for i in first if self._layers[i].startswith(_ENTRIES)), "")
        return Repeated(
            sources, len(instances), again, nbytes, entry if same else "",
            entry.startswith(JOINING), self._line(names),
        )  # fmt: skip

    def _made_again(self, rows: set[int]) -> set[int]:
        """Of what was needed and what that needed, the runs of keys that had been run before."""
        found: set[int] = set()
        waiting = [row for row in rows if self._before[row]]
        while waiting:
            row = waiting.pop()
            if row not in found:
                found.add(row)
                waiting += [on for on in self._on(row) if self._before[on]]
        return found

    def _line(self, names: list[str]) -> Line:
        lines = map(self._recording.groups.line_of, names)
        return next((line for line in lines if line != UNKNOWN), UNKNOWN)


def _done_before(keys: pd.Series, made: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints:
    """For each run how many runs of its key before it made a result."""
    ones = pd.Series(made.astype(np.int64))
    found: Ints = (ones.groupby(keys).cumsum() - ones).to_numpy().astype(np.int64)
    return found
