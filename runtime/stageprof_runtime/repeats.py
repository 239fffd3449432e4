"""What a plan has in it that an earlier plan of this process had as well.

An optimizer moves the choice of columns towards what reads, and fuses what follows one another:
tasks of two questions to the same data have other keys then, though most of their work is the
same. Their plans tell: what an optimizer made is known by the user's expression that it was made
from, and a layer by its name, which depends on all that it is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, Final, NamedTuple

from stageprof_runtime.plan import MOST, Plan

#: Parts remembered, of all plans together; the oldest are forgotten.
REMEMBERED: Final = 50_000
#: Layers above one, each needed by a single other, that it may have been fused into.
UPWARD: Final = 8
#: Parts told of one plan.
TOLD: Final = 500
#: A layer has the work of a part and other work too.
AMONG_OTHERS: Final = "among others"
#: An array has one column, which has no name.
_ARRAY: Final = frozenset({""})
#: Expressions that hold data: to have them again costs nothing.
_DATA: Final = frozenset(
    {"FromPandas", "FromPandasDivisions", "FromArray", "FromGraph", "HLGExpr", "HLGFinalizeCompute"}
)
#: Expressions as much repeated as what they are made of.
_THROUGH: Final = frozenset({"Projection", "Fused"})
#: Functions that cut a chunk out of an array that is there.
_CUTS: Final = frozenset({"getitem", "getter", "getter_inline", "getter_nofancy"})

#: The user's expression or the layer; which of those that an optimizer made of it.
Identity = tuple[str, str]


class Part(NamedTuple):
    """A row of PART."""

    t: int
    name: str
    label: str
    variable: str
    how: str
    common: int
    columns: int


class _Piece(NamedTuple):
    """A part of one plan: what it may run as (and after the first with other work), its columns."""

    t: int
    names: tuple[str, ...]
    alone: bool
    columns: frozenset[str]


class Repeats:
    """The plans of a process, one after another.

    Args:
        origin_of: the name of the user's expression from which an optimizer made the named one.
    """

    def __init__(self, origin_of: Callable[[str], str]) -> None:
        self._origin_of = origin_of
        self._seen: dict[Identity, _Piece] = {}
        self._told: set[Identity] = set()
        self._lock = Lock()

    def of(self, t: int, plan: Plan) -> list[Part]:
        """What a plan has again; remembers what it has.

        Of plans of several threads at once one is: nobody waits here, for a process that was
        forked meanwhile would for ever.
        """
        if not self._lock.acquire(blocking=False):
            return []
        try:
            return list(self._of(t, plan))
        finally:
            self._lock.release()

    def _of(self, t: int, plan: Plan) -> Iterator[Part]:
        pieces: dict[Identity, _Piece] = {}
        again = _Expressions(t, plan, self._origin_of, self._seen).again(pieces)
        for node in plan.nodes.values():
            if type(node).__name__ == "HLGExpr" and _fuses(node):
                again += _layers(t, node.operand("dsk"), self._seen, pieces)
        for identity in again[:TOLD]:
            yield from self._rows(identity, pieces[identity])
        self._remember(pieces)

    def _rows(self, identity: Identity, piece: _Piece) -> Iterator[Part]:
        before = self._seen[identity]
        if before.names == piece.names:
            return  # of the same keys
        if identity not in self._told:
            self._told.add(identity)
            yield from _rows(identity, before, 0)
        yield from _rows(identity, piece, len(before.columns & piece.columns))

    def _remember(self, pieces: Mapping[Identity, _Piece]) -> None:
        for identity, piece in pieces.items():
            self._seen.setdefault(identity, piece)
        while len(self._seen) > REMEMBERED:
            oldest = next(iter(self._seen))
            del self._seen[oldest]
            self._told.discard(oldest)


def _rows(identity: Identity, piece: _Piece, common: int) -> Iterator[Part]:
    for i, name in enumerate(piece.names):
        how = "" if piece.alone and not i else AMONG_OTHERS
        yield Part(piece.t, name, *identity, how, common, len(piece.columns))


class _Expressions:
    """The expressions of one plan, those below before those above."""

    def __init__(
        self,
        t: int,
        plan: Plan,
        origin_of: Callable[[str], str],
        seen: Mapping[Identity, _Piece],
    ) -> None:
        self._t = t
        self._plan = plan
        self._origin_of = origin_of
        self._seen = seen
        self._counts: Counter[Identity] = Counter()

    def again(self, pieces: dict[Identity, _Piece]) -> list[Identity]:
        """The topmost of each group that earlier plans had; adds all to `pieces`."""
        repeated: dict[int, bool] = {}
        top: dict[str, Identity] = {}
        for node in _upwards(self._plan):
            below = all(repeated.get(id(part), True) for part in self._plan.parts[id(node)])
            kind = type(node).__name__
            if kind in _DATA or kind in _THROUGH:
                repeated[id(node)] = below
                continue
            identity, piece = self._piece(node)
            pieces[identity] = piece
            repeated[id(node)] = below and identity in self._seen
            if repeated[id(node)]:
                top[piece.names[0]] = identity
        return list(top.values())

    def _piece(self, node: Any) -> tuple[Identity, _Piece]:
        made = self._origin_of(node._name), type(node).__name__
        self._counts[made] += 1
        identity = made[0], f"{made[1]} {self._counts[made]}{_partitions(node)}"
        group = self._plan.groups.get(id(node))
        name = node._name if group is None else group._name
        return identity, _Piece(self._t, (name,), group is None, _columns(node))


def _partitions(node: Any) -> str:
    """Which partitions an expression makes, if not all: others are other work."""
    if "_partitions" not in type(node)._parameters:
        return ""
    chosen = node.operand("_partitions")
    return f" of {hash(tuple(chosen)):x}" if type(chosen) is list else ""


def _upwards(plan: Plan) -> Iterator[Any]:
    """All expressions, each after what it is made of."""
    done: set[int] = set()
    for first in plan.nodes.values():
        stack = [(first, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                yield node
            elif id(node) in plan.nodes and id(node) not in done:
                done.add(id(node))
                stack.append((node, True))
                stack.extend((part, False) for part in plan.parts[id(node)])


def _columns(node: Any) -> frozenset[str]:
    """The columns of what an expression makes, if the plan has worked them out already."""
    meta = vars(node).get("_meta")
    if type(meta).__name__ == "Series":
        return frozenset({meta.name}) if type(meta.name) is str else frozenset()
    if type(meta).__name__ != "DataFrame":
        return frozenset()
    return frozenset(name for name in list(meta.columns) if type(name) is str)


# -- graphs of layers -------------------------------------------------------------------------


def _fuses(node: Any) -> bool:
    """Whether a graph's own optimizer may fuse its tasks; those of `delayed` calls keep keys."""
    if "low_level_optimizer" not in type(node)._parameters:
        return False
    module = getattr(node.operand("low_level_optimizer"), "__module__", None)
    return module not in (None, "dask.delayed")


def _layers(
    t: int, graph: Any, seen: Mapping[Identity, _Piece], pieces: dict[Identity, _Piece]
) -> list[Identity]:
    """The topmost layers of a graph that earlier plans had; adds all to `pieces`."""
    layers, needs = getattr(graph, "layers", None), getattr(graph, "dependencies", None)
    if type(layers) is not dict or type(needs) is not dict or len(layers) > MOST:
        return []
    users: dict[str, list[str]] = {}
    for name, others in needs.items():
        for other in others:
            users.setdefault(other, []).append(name)
    known: dict[str, Identity] = {}
    for name, layer in layers.items():
        if type(name) is str and (needs[name] or not _is_data(layer)):
            known[name] = identity = name, f"{type(layer).__name__} {len(needs[name])}"
            pieces[identity] = _Piece(t, _above(name, users), alone=True, columns=_ARRAY)
    again = {name: identity for name, identity in known.items() if identity in seen}
    return [again[name] for name in again if not again.keys() >= set(users.get(name, ()))]


def _above(name: str, users: Mapping[str, list[str]]) -> tuple[str, ...]:
    """A layer, and those above it that alone need the one below."""
    found = [name]
    while len(found) < UPWARD and len(users.get(name, ())) == 1:
        (name,) = users[name]
        if type(name) is not str:
            break
        found.append(name)
    return tuple(found)


def _is_data(layer: Any) -> bool:
    """Whether a layer that needs no other holds data, by its first task."""
    mapping = getattr(layer, "mapping", None)
    if type(mapping) is not dict or not mapping:
        return False
    first = next(iter(mapping.values()))
    function = first[0] if type(first) is tuple and first else getattr(first, "func", None)
    name = getattr(function, "__name__", "") if callable(function) else ""
    return name in _CUTS or not callable(function)
