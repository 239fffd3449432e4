"""Shuffles of the same data, done more than once in a recording."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stageprof_collectors.exchange import Method, kind
from stageprof_collectors.lines import UNKNOWN, Line, Lines
from stageprof_collectors.tasks import layer_of
from stageprof_collectors.timeline import LOCAL, Ints

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

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
    #: the line that made the shuffle, or what was shuffled
    line: Line


class Reshuffles:
    """The shuffles of data frames of one recording."""

    def __init__(self, recording: Recording) -> None:
        store, runs = recording.store, recording.timeline.runs
        self._recording = recording
        keys = pd.Series(store.keys(runs["key"]), dtype=object)
        self._layers = [layer_of(key) for key in keys]
        #: how often each run's key had been run before
        self._before: Ints = keys.groupby(keys).cumcount().to_numpy().astype(np.int64)
        self._is_local = runs["run"] >= LOCAL

    @cached_property
    def all(self) -> list[Repeated]:
        """What was shuffled more than once."""
        by_source: defaultdict[frozenset[str], list[Instance]] = defaultdict(list)
        for instance, rows in self._instances.items():
            sources = frozenset(self._layers[i] for i in self._inputs(rows))
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
        return Repeated(sources, len(instances), again, nbytes, self._line(names))

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
        lines = Lines(self._recording.store)
        return next((line for name in names if (line := lines.of(name)) != UNKNOWN), UNKNOWN)
