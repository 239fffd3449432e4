"""One object of the user's and all that is it in a graph: aliases, views, chunks, parts, slices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from stageprof_runtime.event import OBJECT
from stageprof_runtime.examination import SLOW, Taken
from stageprof_runtime.holder import Held
from stageprof_runtime.kinds import title
from stageprof_runtime.kinship import address, is_numpy, parent
from stageprof_runtime.names import Known

#: Values of one class from which their median tells how long one takes.
MANY_ALIKE: Final = 10


class Group:
    """One object of the user's: all values in a graph that are it, or pieces of it."""

    def __init__(self, known: Known, helds: list[Held], took: dict[int, Taken]) -> None:
        self._known = known
        self._helds = helds
        values = {id(held.value): held.value for held in helds}
        parts = [took[i] for i in values if i in took]
        self.took = (
            Taken(*(sum(column) for column in zip(*parts, strict=True)))
            if parts
            else (Taken(0, 0, 0))
        )
        self._pieces = len(values)
        self._copies = _copies(next(iter(values.values())), self._pieces, self.took.buffers)

    @property
    def number(self) -> int:
        """Its number in what is told of it."""
        return self._known.number

    @property
    def key(self) -> object:
        """The key whose result it is that was fetched, or was made from; None if of none."""
        return self._known.key

    @property
    def rank(self) -> int:
        """What is told first: bytes, and a byte for a nanosecond."""
        return self.took.nbytes + self.took.ns

    def rows(self, graph: int, t: int) -> Iterable[tuple[Any, ...]]:
        """A row for each layer that holds it."""
        layers: defaultdict[str, list[Held]] = defaultdict(list)
        for held in self._helds:
            layers[held.layer].append(held)
        first = self._helds[0].value
        nbytes = self.took.nbytes // self._copies
        copies, ns = self._copies, self.took.ns
        number, origin = self.number, self._known.origin
        for layer, helds in layers.items():
            tasks = 0 if helds[0].key is None else len({_hashable(h.key) for h in helds})
            name = (title(type(first)), layer, helds[0].how, *origin)
            yield (OBJECT, t, number, graph, *name, nbytes, copies, self._pieces, tasks, ns)
            copies = ns = 0


def _copies(value: Any, pieces: int, nbytes: int) -> int:
    """How often the same bytes are in a graph whose values are views of one parent."""
    if address(value):  # each slice is pickled with its parent's buffers
        return pieces
    if not is_numpy(value):
        return 1
    return max(1, round(nbytes / max(1, int(parent(value).nbytes))))


def _hashable(key: object) -> object:
    return key if type(key) in (str, int, tuple) else id(key)


def quick_types(found: list[Held], took: dict[int, Taken]) -> set[type]:
    """Classes of which most values were pickled quickly.

    Where one of them took long, something else had the processor while it was pickled.
    """
    times: defaultdict[type, dict[int, int]] = defaultdict(dict)
    for held in found:
        part = took.get(id(held.value))
        if part is not None:
            times[type(held.value)][id(held.value)] = part.ns
    return {
        cls
        for cls, ns in times.items()
        if len(ns) >= MANY_ALIKE and sorted(ns.values())[len(ns) // 2] < SLOW // 10
    }
