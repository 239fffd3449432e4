"""What carrying the tasks of a layer took: dumped by the scheduler, loaded by the workers.

Fusing renames layers: one that is not found by its name is found by the user's line that made it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.storage.layered import layer_of
from stageprof_collectors.tables.lines import UNKNOWN, Line, Lines
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

HOPS: Final = ("task.dump", "task.load")


class Took(NamedTuple):
    """How often a step was taken, and its seconds and bytes together."""

    number: float = 0
    seconds: float = 0.0
    nbytes: int = 0

    def plus(self, other: Took) -> Took:
        """Both."""
        return Took(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[arg-type]

    def times(self, part: float) -> Took:
        """A part of it."""
        return Took(self.number * part, self.seconds * part, int(self.nbytes * part))


class Rooms:
    """Bytes for which there is room in the messages of each layer's tasks."""

    def __init__(self, rooms: Iterable[tuple[float, str]]) -> None:
        self._rooms = sorted(rooms)

    def take(self, nbytes: int) -> str:
        """The layer in whose messages an object of so many bytes is; "" if in none.

        It is that with the least room for it, which it has no longer.
        """
        at = bisect_left(self._rooms, (nbytes, ""))
        if at == len(self._rooms):
            return ""
        room, layer = self._rooms.pop(at)
        insort(self._rooms, (room - nbytes, layer))
        return layer


class Layers:
    """Runs, and seconds and bytes of the steps of tasks, by layer, prefix or user line."""

    def __init__(self, recording: Recording) -> None:
        layered = recording.layered
        counts = layered.counts.tolist()
        self._lines = Lines(recording.store)
        self._runs = Counter(dict(zip(layered.names, counts, strict=True)))
        self._prefixes = Counter[str]()
        for prefix, runs in zip(layered.prefixes, counts, strict=True):
            self._prefixes[prefix] += runs
        self._took = _shares(recording)
        self._names = defaultdict[str, list[str]](list)
        for name in self._took:
            if key_split(name) != name:
                self._names[key_split(name)].append(name)
        self._left = {step: self._untold(recording, step) for step in HOPS}

    def _untold(self, recording: Recording, step: str) -> Took:
        """Seconds of a step that no layer was told to have taken: they are all layers'."""
        roles = [place.role for place in recording.store.places]
        spans = recording.timeline.spans
        doing = {_DOES[step], "client" if (recording.timeline.runs["run"] >= LOCAL).any() else ""}
        does = [i for i, role in enumerate(roles) if role in doing]
        mine = (spans["step"] == STEP[step]) & np.isin(spans["place"], does)
        total = float((spans["stop"][mine] - spans["start"][mine]).sum()) / 1e9
        told = sum(took[step].seconds for took in self._took.values() if step in took)
        return Took(0, max(0.0, total - told), 0)

    def runs(self, layer: str) -> int:
        """Runs of a layer; where fusing has renamed it, of the layers made at its line."""
        known = self._runs.get(layer) or self._prefixes.get(layer)
        return known or self._runs_at.get(self._lines.of(layer), 0)

    def rooms(self, known: Mapping[str, int]) -> Rooms:
        """What else than `known` bytes of objects each layer's tasks' messages may hold."""
        dumps = {n: took["task.dump"] for n, took in self._took.items() if "task.dump" in took}
        return Rooms(
            (took.nbytes / took.number - known.get(name, 0), name)
            for name, took in dumps.items()
            if name in self._runs and took.number
        )

    def took(self, layer: str, step: str) -> Took:
        """Seconds and bytes of a step for a layer, found in the same way."""
        own = self._took.get(layer, {}).get(step, Took())
        if layer not in self._runs and layer in self._prefixes:  # all keys of `client.map`
            for name in self._names.get(layer, ()):
                own = own.plus(self._took[name].get(step, Took()))
        rest = self._runs.get(layer, 0) - own.number
        prefix = self._took.get(key_split(layer), {}).get(step, Took())
        if rest > 0 and prefix.number and key_split(layer) != layer:
            # Tasks that are layers of their own are told one by one if they took long, and else
            # by their prefix.
            own = own.plus(prefix.times(rest / prefix.number))
        if not own.number:
            own = own.plus(self._took_at.get((self._lines.of(layer), step), Took()))
        return (
            own
            if own.number
            else self._left[step].times(self._runs.get(layer, 0) / max(1, sum(self._runs.values())))
        )

    def message(self, layer: str) -> float:
        """Bytes of a message with one of its tasks, or of its prefix; 0 if none was told of."""
        told = (self._took.get(name, {}).get("task.dump") for name in (layer, key_split(layer)))
        return next((took.nbytes / took.number for took in told if took and took.number), 0.0)

    @cached_property
    def _runs_at(self) -> dict[Line, int]:
        """Runs of all layers made at each line."""
        found = Counter[Line]()
        for name, runs in self._runs.items():
            found[self._lines.of(name)] += runs
        return {line: runs for line, runs in found.items() if line != UNKNOWN}

    @cached_property
    def _took_at(self) -> dict[tuple[Line, str], Took]:
        """What all layers made at each line took, by step."""
        found: dict[tuple[Line, str], Took] = {}
        for name, steps in self._took.items():
            line = self._lines.of(name)
            for step, took in steps.items():
                if line != UNKNOWN:
                    found[line, step] = found.get((line, step), Took()).plus(took)
        return found


def _shares(recording: Recording) -> dict[str, dict[str, Took]]:
    """Seconds and bytes of tasks' dumps and loads, by layer (or prefix, or key) and step."""
    table, strings = recording.store.table("share"), recording.store.strings
    sums: defaultdict[str, dict[str, Took]] = defaultdict(dict)
    steps = {STEP[step]: step for step in HOPS}
    columns = (table[n].tolist() for n in ("step", "name", "count", "total", "nbytes", "place"))
    roles = [place.role for place in recording.store.places]
    for step, name, count, total, nbytes, place in zip(*columns, strict=True):
        hop = steps.get(step)
        if hop is not None and roles[place] == _DOES[hop]:
            mine = sums[layer_of(strings[name])]
            mine[hop] = mine.get(hop, Took()).plus(Took(count, total / 1e9, nbytes))
    return sums


#: Whose dump and load of a task count: a client's tasks are dumped by the scheduler.
_DOES: Final = {"task.dump": "scheduler", "task.load": "worker"}
