"""What a graph consists of: its layers with their numbers of tasks, without building them.

A layer of blocks knows its keys before it has tasks, and an expression its partitions. Steps that
follow each other block by block become one task; of layers that is worked out as Dask does it, of
expressions it is not. What cannot be counted without building it is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from dask.blockwise import optimize_blockwise

from stageprof_collectors.findings.calling import Calling
from stageprof_collectors.preflight.asked import Asking
from stageprof_collectors.preflight.dividing import divided_first
from stageprof_collectors.preflight.frames import object_columns, sizes
from stageprof_collectors.preflight.layers import (
    called,
    ends,
    held,
    is_blockwise,
    names,
    of_bag,
    output,
    tasks_in_order,
    tasks_of_output,
)
from stageprof_collectors.preflight.needed import layers_needed
from stageprof_collectors.preflight.plan import Frame, Layer, Plan, Watch, plain
from stageprof_collectors.tables.site import Collection
from stageprof_runtime.kinds import attributes
from stageprof_runtime.loaded import of_layers
from stageprof_runtime.made import prefix_of
from stageprof_runtime.parts import EXPRESSION, GRAPH, part_of
from stageprof_runtime.plan import plan_of
from stageprof_runtime.unfused import unfused

#: Expressions and layers looked at, at some 5 us each: a graph of more says enough by those.
MOST: Final = 200_000
#: Layers up to which steps that become one are worked out: some 2 ms each.
FUSED: Final = 200
#: Tells the line that made a name.
LineOf = Callable[[str], tuple[str, int]]


def read(graph: Any, plan: Plan, line_of: LineOf, watch: Watch) -> None:
    """Take the layers and frames of a graph into a plan.

    Raises:
        OutOfTimeError: what was read until then is in the plan.
    """
    reader = _Reader(plan, line_of, watch)
    if type(graph) is dict:
        reader.mapping(graph)
    else:
        reader.expressions(graph)


class _Reader:
    def __init__(self, plan: Plan, line_of: LineOf, watch: Watch) -> None:
        self._plan = plan
        self._line_of = line_of
        self._watch = watch
        self._left = MOST
        self._asking = Asking()
        #: the ids of expressions that know their partitions only once something was computed
        self._divided: frozenset[int] = frozenset()
        #: the ids of those that became part of another one's tasks
        self._fused: set[int] = set()

    def expressions(self, graph: Any) -> None:
        """An expression and all that it needs; a bare graph of layers will do, too."""
        seen: set[object] = set()
        self._divided = divided_first(graph, inside, MOST)
        stack = list(graph) if type(graph) is list else [graph]
        if len(stack) == 1 and part_of(stack[0]) == EXPRESSION:
            self._plan.unfused.extend(unfused(plan_of(stack[0])))
        while stack:
            self._watch.check()
            node = stack.pop()
            part = part_of(node)
            name = attributes(node).get("_name") if part == EXPRESSION else None
            mark = name if type(name) is str else id(node)
            if mark in seen or not self._may():
                continue
            seen.add(mark)
            if part == EXPRESSION:
                self._expression(node)
                stack.extend(inside(node))
                self._asking.see(node)
            elif part == GRAPH:
                self._graph(node)

    def _may(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self._plan.cannot(f"expressions and layers after the first {MOST:,}")
        return self._left >= 0

    def mapping(self, tasks: dict[Any, Any]) -> None:
        """A plain graph: tasks by key."""
        counts: dict[str, int] = {}
        chunks: set[str] = set()
        for key in tasks:
            name = key[0] if type(key) is tuple and key else key
            name = name if type(name) is str else ""
            prefix = prefix_of(name)
            counts[prefix] = counts.get(prefix, 0) + 1
            if type(key) is tuple:
                chunks.add(prefix)
        for prefix, number in counts.items():
            kind = Collection.ARRAY if prefix in chunks else Collection.CALLS
            self._add(prefix, number, kind)

    # -- expressions ---------------------------------------------------------------------------

    def _expression(self, node: Any) -> None:
        name = attributes(node).get("_name")
        name = name if type(name) is str else ""
        kind = type(node).__name__
        operands = dict(zip(type(node)._parameters, node.operands, strict=False))
        if kind == "_MapExpr":
            several = len(operands.get("iterables") or ()) > 1
            calls = (_text(operands.get("key")), _longest(operands), Collection.CALLS)
            given = names(operands.get("kwargs"))
            self._add(*calls, calling=Calling(futures=True, several=several, keywords=given))
        elif kind == "LLGExpr":
            if type(operands.get("dsk")) is dict:
                self.mapping(operands["dsk"])
        elif hasattr(type(node), "npartitions"):
            if kind == "Fused":
                self._fused.update(map(id, operands["exprs"]))
            self._frame(node, name)

    def _frame(self, node: Any, name: str) -> None:
        if id(node) in self._divided:
            self._plan.cannot("how many partitions there are of what is sorted (that is computed)")
            return
        try:
            number = int(node.npartitions)
        except Exception as error:  # it has to be worked out by reading data
            self._plan.cannot(f"how many partitions `{prefix_of(name)}` has ({plain(error)})")
            return
        source = not any(part_of(o) == EXPRESSION for o in node.operands)
        if id(node) not in self._fused:
            self._add(name, number, Collection.FRAME, *sizes(node, number), source=source)
        columns = object_columns(node)
        if columns and source:
            self._plan.frames.append(Frame(name, columns, *self._line_of(name)))

    # -- layers --------------------------------------------------------------------------------

    def _graph(self, graph: Any) -> None:
        layers = dict(graph.layers)
        self._note(graph)
        outputs, together = self._asking.outputs(graph)
        self._plan.outputs |= outputs
        self._plan.joined.extend(together)
        self._plan.sizes |= {str(n): output(layer) or 0 for n, layer in layers.items()}
        joined, left = self._joined(graph, self._plan.outputs)
        users = graph.dependents
        needs = layers_needed(joined, self._asking.keys(graph), self._plan, self._watch)
        for name, layer in [item for item in needs.items() if item[0] in left]:
            self._watch.check()
            if not self._may():
                return
            own = layers.get(name, layer)
            facts = {"held": held(name, graph.dependencies, users, joined.layers)}
            self._layer(str(name), layer, own, facts | {"source": not graph.dependencies.get(name)})

    def _note(self, graph: Any) -> None:
        """What the graph loads and does not use, which chunks are made of which, and the lines."""
        self._plan.loaded.extend(of_layers(graph))
        arrays = {n: _bytes(_chunks(x))[1] for n, x in graph.layers.items() if _chunks(x)}
        for name in arrays:
            needs = [need for need in graph.dependencies[name] if need in arrays]
            self._plan.needs[str(name)] = {str(need): arrays[need] for need in needs}
        for name in (*arrays, *(row.variable for row in self._plan.loaded)):
            line = self._line_of(str(name))
            if line[0]:
                self._plan.made[str(name)] = line

    def _joined(self, graph: Any, outputs: frozenset[str]) -> tuple[Any, set[Any]]:
        """The graph after layers that follow each other block by block have become one.

        And the names of those that are left, where only these were worked out.
        """
        blocks = sum(is_blockwise(x) for x in graph.layers.values())
        if blocks > FUSED:
            return graph, ends(graph) | {name for name in graph.layers if str(name) in outputs}
        if blocks:
            try:
                graph = optimize_blockwise(graph, keys=outputs)
            except Exception as error:  # a layer that is not as Dask's are
                self._plan.cannot(f"which layers become one ({plain(error)})")
        return graph, set(graph.layers)

    def _layer(self, name: str, layer: Any, own: Any, facts: dict[str, Any]) -> None:
        if not is_blockwise(layer) and not layer.is_materialized():
            number = tasks_of_output(layer)
        else:
            number = output(layer)
        if number is None:
            self._plan.cannot(f"how many tasks `{prefix_of(name)}` has: it is not built yet")
            return
        if not number:
            return
        chunks = _chunks(own)
        mapping = getattr(layer, "mapping", None)
        first = next(iter(mapping), None) if type(mapping) is dict else None
        kind = Collection.ARRAY if chunks else Collection.CALLS
        if name.isdigit() and type(first) in (str, tuple):
            name = _text(first)
        sizes = _bytes(chunks) if chunks else (-1, -1)
        bag = not chunks and of_bag(name, layer)
        facts = {"held": facts["held"], "bag": bag, "source": bag and facts["source"]}
        facts |= {"calling": called(layer)}
        self._add(name, number, kind, *sizes, in_order=tasks_in_order(layer), **facts)

    def _add(
        self,
        name: str,
        number: int,
        kind: Collection,
        piece: int = -1,
        whole: int = -1,
        **facts: Any,
    ) -> None:
        if number > 0:
            line = self._line_of(name) if name else ("", 0)
            self._plan.sizes[name] = number
            if line[0]:
                self._plan.made[name] = line
                self._plan.made.setdefault(prefix_of(name), line)
            known = (name, prefix_of(name), number, kind, piece, whole)
            self._plan.layers.append(Layer(*known, *line, **facts))


def inside(node: Any) -> Iterator[Any]:
    """Expressions and graphs among the operands of an expression."""
    for operand in node.operands:
        for part in operand if type(operand) in (list, tuple) else (operand,):
            module = type.__dict__["__module__"].__get__(type(part))
            ours = type(module) is str and module.startswith(("dask", "distributed"))
            if ours and part_of(part) in (EXPRESSION, GRAPH):
                yield part


def _text(key: Any) -> str:
    while type(key) in (list, tuple) and key:
        key = key[0]
    return key if type(key) is str else ""


def _longest(operands: dict[str, Any]) -> int:
    """Tasks of `client.map`: as many as its shortest iterable has."""
    iterables = operands.get("iterables") or ()
    sizes = [len(x) for x in iterables if type(x) in (list, tuple, range)]
    return min(sizes, default=0)


def _chunks(layer: Any) -> dict[str, Any]:
    """What Dask notes of the chunks of an array's layer; nothing of others."""
    noted = getattr(layer, "collection_annotations", None)
    return noted if type(noted) is dict and "chunks" in noted else {}


def _bytes(chunks: dict[str, Any]) -> tuple[int, int]:
    """Bytes of the usual and of all pieces of an array; -1 where sizes are not known."""
    try:
        each = int(chunks["dtype"].itemsize)
        piece = math.prod(max(sizes) for sizes in chunks["chunks"]) * each
        return int(piece), int(math.prod(chunks["shape"]) * each)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return -1, -1
