"""Who holds what in a graph: every value in it that is not the graph itself, and the way to it.

Walks expressions, layers and tasks, and what functions carry, without materializing a layer and
without running any code of the user's. Bounded in time: what was not reached is said.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.functions import carried, name_of
from stageprof_runtime.holder import Held, Holder
from stageprof_runtime.kinds import (
    ATOM,
    CONTAINER,
    CUSTOM,
    DATA,
    FUNCTION,
    STRUCTURE,
    TEXT,
    attributes,
    is_a,
    kind_of,
)
from stageprof_runtime.parts import EXPRESSION, GRAPH, LAYER, NODE, OTHER, part_of
from stageprof_runtime.weight import weigh
from stageprof_runtime.wording import MAP, call_of, pairs, short, text_of

#: Bytes from which a value is an embedded object: at 100 kB a task's message is larger than all
#: else that is sent for it, a hundred times over.
LEAST: Final = 100_000
#: A container of data with more elements than this is one object and not so many.
MANY: Final = 256
#: A layer of data may be one container of the user's in so many parts.
PARTS: Final = 100
#: How the graph holds what is a task's whole value.
DATUM: Final = "data of the graph"
#: Levels of structures, functions and containers inside each other that are followed.
DEPTH: Final = 24
#: So many values are visited between two looks at the clock.
_STRIDE: Final = 256


def _never(x: object) -> bool:
    return False


def _held(x: object, at: Holder, how: str, name: str) -> Held:
    return Held(x, at.layer, how, name, at.within, at.key, at.function)


def _are_tasks(x: dict[Any, Any]) -> bool:
    return kind_of(next(iter(x.values()), None)) == STRUCTURE


class OutOfTimeError(Exception):
    """The walk took longer than it may."""


class Walk:
    """One walk over a graph or a part of it."""

    def __init__(
        self,
        until: int = 2**63,
        whole: Callable[[Any], bool] | None = None,
        *,
        deep: bool = True,
        first: AbstractSet[int] = frozenset(),
        clock: Callable[[], int] = now_ns,
    ) -> None:
        """A walk that has not begun.

        Args:
            until: instant (ns) at which to stop.
            whole: says of a container whether it is one object, whatever is in it.
            deep: whether to follow expressions and layers inside the first one.
            first: ids of the layers and tasks that are visited before others.
            clock: what `until` is an instant of.
        """
        self.found: list[Held] = []
        self.stopped = False
        self._until = until
        self._whole = whole or _never
        self._deep = deep
        self._first = first
        self._clock = clock
        self._seen: set[int] = set()
        self._functions: dict[int, list[tuple[object, str, str]]] = {}
        self._left = _STRIDE

    def graph(self, x: object, layer: str = "") -> list[Held]:
        """What a graph, layer or expression holds."""
        try:
            self._value(x, Holder(layer, 0, None, DEPTH), "", "")
        except OutOfTimeError:
            self.stopped = True
        return self.found

    # -- values -----------------------------------------------------------------------------

    def _value(self, x: Any, at: Holder, how: str, name: str) -> None:
        kind = kind_of(x)
        if kind == ATOM:
            return
        self._tick()
        if kind == TEXT:
            if len(x) >= LEAST:
                self.found.append(_held(x, at, how, name))
        elif kind in (DATA, CUSTOM):
            self.found.append(_held(x, at, how, name))
        elif at.depth > 0:
            if kind == FUNCTION:
                self._function(x, at)
            elif kind == CONTAINER:
                self._container(x, at._replace(depth=at.depth - 1), how, name)
            else:
                self._structure(x, at._replace(depth=at.depth - 1), how, name)

    def _tick(self) -> None:
        self._left -= 1
        if self._left < 0:
            self._left = _STRIDE
            if self._clock() > self._until:
                raise OutOfTimeError

    def _container(self, x: Any, at: Holder, how: str, name: str) -> None:
        if not x:
            return
        if not self._divides(x) or self._whole(x):
            least = LEAST // PARTS if how == DATUM else LEAST
            if weigh(x) >= least or self._whole(x):
                self.found.append(_held(x, at, how, name))
            return
        if type(x) is dict:
            for key, value in list(x.items()):
                self._value(value, at, f"{how}[{short(key)}]", name)
        elif type(x) is tuple and kind_of(x[0]) == FUNCTION:  # a task as a tuple
            self._value(x[0], at, "", "")
            for i, value in enumerate(x[1:], 1):
                self._value(value, at, f"argument {i} of {name_of(x[0])}", "")
        else:
            for i, value in enumerate(list(x)):
                self._value(value, at, f"{how}[{i}]", name)

    def _divides(self, x: Any) -> bool:
        """Whether a container's elements are looked at one by one."""
        values = x.values() if type(x) is dict else x
        kinds = set(map(kind_of, list(itertools.islice(values, 8))))
        if STRUCTURE in kinds or (FUNCTION in kinds and type(x) is tuple):
            return True
        return len(x) <= MANY and not kinds <= {ATOM, TEXT}

    def _function(self, f: Any, at: Holder) -> None:
        inside = self._functions.get(id(f))
        if inside is None:
            inside = self._functions[id(f)] = list(carried(f))
        if inside and at.depth > 0:
            at = at._replace(function=f, depth=at.depth - 1)
            for value, how, name in inside:
                self._value(value, at, how, name)

    # -- parts of the graph -----------------------------------------------------------------

    def _structure(self, x: Any, at: Holder, how: str, name: str) -> None:
        part = part_of(x)
        if part == NODE:
            self._node(x, at)
        elif part == EXPRESSION:
            if at.depth == DEPTH - 1 or self._deep:
                self._expression(x, at)
        elif part == GRAPH:
            if self._deep:
                self._layers(x.layers, at)
        elif part == LAYER:
            self._layer(x, at)
        elif part == OTHER and id(x) not in self._seen:
            self._seen.add(id(x))
            at, inside = at._replace(within=id(x)), attributes(x)
            if is_a(x, "dask.delayed", "DelayedLeaf"):  # a task that is a value of the user's
                own = at.task(inside.get("_key"), datum=True)
                self._value(inside.get("_obj"), own, DATUM, "")
                return
            for value in inside.values():
                self._value(value, at, how, name)

    def _items(self, x: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        items = list(x.items())
        if self._first:
            items.sort(key=lambda item: id(item[1]) not in self._first)
        return items

    def _layers(self, layers: Any, at: Holder) -> None:
        for name, layer in self._items(layers):
            if id(layer) not in self._seen:
                self._seen.add(id(layer))
                self._layer(layer, Holder(str(name), id(layer), None, at.depth))

    def _layer(self, x: Any, at: Holder) -> None:
        mapping = getattr(x, "mapping", None)
        if type(mapping) is dict:
            self._tasks(mapping, Holder(at.layer, id(x), at.key, at.depth))
            return
        at = at._replace(within=id(x))
        inside = attributes(x)
        title = name_of(getattr(inside.get("task"), "func", None) or type(x))
        for i, index in enumerate(inside.get("indices") or (), 1):
            if type(index) is tuple and index and index[-1] is None:
                self._value(index[0], at, f"argument {i} of {title}", "")
        for name in inside.keys() - {"indices", "annotations", "collection_annotations"}:
            self._value(inside[name], at, f"{name} of {title}", "")

    def _tasks(self, mapping: dict[Any, Any], at: Holder, *, fused: bool = False) -> None:
        for key, task in self._items(mapping):
            node = kind_of(task) == STRUCTURE and part_of(task) == NODE
            datum = not getattr(task, "func", None) if node else type(task) is not tuple
            here = at if fused else at.task(key, datum=datum)
            if node:  # most are: the short way
                self._tick()
                self._node(task, here)
            else:
                self._value(task, here, DATUM, "")

    def _node(self, x: Any, at: Holder) -> None:
        at = Holder(at.layer, id(x), at.key, at.depth, at.function)
        function = getattr(x, "func", None)
        if function is None:
            self._value(getattr(x, "value", None), at, DATUM, "")
            return
        self._value(function, at, "", "")
        for i, value in enumerate(x.args, 1):
            kind = kind_of(value)
            if kind == CONTAINER and type(value) is dict and _are_tasks(value):
                self._tasks(value, at, fused=True)  # they are in its message, and not by themselves
            elif kind != ATOM:
                self._value(value, at, f"argument {i} of {name_of(function)}", "")
        for name, value in x.kwargs.items():
            if kind_of(value) != ATOM:
                self._value(value, at, f"keyword {name} of {name_of(function)}", str(name))

    # -- expressions ------------------------------------------------------------------------

    def _expression(self, x: Any, at: Holder) -> None:
        if id(x) in self._seen:
            return
        self._seen.add(id(x))
        inside = attributes(x)
        name, call = inside.get("_name"), call_of(type(x).__name__)
        parameters = type(x)._parameters
        operands: Iterable[Any] = inside.get("operands") or ()
        if call == MAP:  # its tasks are named after its key, or by a list of keys
            name = dict(zip(parameters, operands, strict=False)).get("key")
        at = at._replace(layer=text_of(name) or at.layer, within=id(x), depth=DEPTH - 2)
        for i, operand in enumerate(operands):
            parameter = parameters[i] if i < len(parameters) else ""
            if parameter not in _OURS:
                self._operand(operand, at, parameter, call, i - len(parameters) + 1)

    def _operand(self, x: Any, at: Holder, parameter: str, call: str, extra: int) -> None:
        if parameter == "dsk" and type(x) is dict:
            for key, task in self._items(x):
                self._value(task, at._replace(layer=str(key), key=key), "", "")
        elif parameter == "kwargs":
            for name, value in pairs(x):
                self._value(value, at, f"keyword {name} of {call}", name)
        elif parameter in ("args", "iterables") and type(x) in (tuple, list):
            for i, value in enumerate(x, 1):
                self._argument(value, at, f"argument {i} of {call}")
        else:
            self._value(x, at, f"{parameter or f'argument {extra}'} of {call}", parameter)

    def _argument(self, x: Any, at: Holder, how: str) -> None:
        """An argument; of `client.map` one for all tasks, of which each gets an element."""
        mapped = how.endswith(MAP) and type(x) in (list, tuple)
        if not mapped or self._whole(x):
            self._value(x, at, how, "")
            return
        for i, value in enumerate(list(x)):
            self._value(value, at._replace(key=i), how, "")


#: Operands of Dask's own making, which hold no data of the user's.
_OURS: Final = frozenset(
    {"low_level_optimizer", "output_keys", "postcompute", "_cached_optimized", "_cached_keys"}
)
