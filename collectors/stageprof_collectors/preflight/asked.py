"""What is asked for of a graph: whose pieces stay, and which of them one task puts together.

`persist` leaves the pieces where they are. `compute` of an array ends in a task that is given all
of them, on one worker, and makes one array of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: What Dask calls the task that puts the pieces of a result together, and the expression of one.
_TOGETHER: Final = "finalize-"
_FINALIZING: Final = "HLGFinalizeCompute"
#: Expressions that hold a graph of layers, and are told what is asked for of it.
_TOLD: Final = frozenset({"HLGExpr", "_HLGExprGroup"})


class Outputs(NamedTuple):
    """Names of the layers whose results are asked for."""

    names: frozenset[str] = frozenset()
    #: those of which one task puts all pieces together, for each such task
    joined: tuple[frozenset[str], ...] = ()


class Asking:
    """What each graph of an expression is asked for, as far as that is known."""

    def __init__(self) -> None:
        #: by the id of a graph
        self._keys: dict[int, Any] = {}
        #: ids of expressions whose results are put together, and of graphs
        self._joined: set[int] = set()

    def see(self, node: Any) -> None:
        """Note what an expression asks for; those around it are seen before it."""
        operands = dict(zip(type(node)._parameters, node.operands, strict=False))
        if type(node).__name__ == _FINALIZING:
            self._joined.add(id(operands.get("dsk")))
        elif type(node).__name__ in _TOLD:
            graph = operands.get("dsk")
            self._keys[id(graph)] = operands.get("output_keys")
            if id(node) in self._joined:
                self._joined.add(id(graph))

    def keys(self, graph: Any) -> Any:
        """The keys that are asked for; None if that is not known."""
        return self._keys.get(id(graph))

    def outputs(self, graph: Any) -> Outputs:
        """The layers that are; where that is not known, those that no other needs."""
        asked = set(names(self.keys(graph))) & {str(name) for name in graph.layers}
        if not asked:
            return Outputs(_ends(graph))
        joined = [_given(graph, name) for name in asked if name.startswith(_TOGETHER)]
        if id(graph) in self._joined:
            joined.append(frozenset(asked))
        alone = frozenset(name for name in asked if not name.startswith(_TOGETHER))
        return Outputs(alone.union(*joined), tuple(filter(None, joined)))


def names(keys: Any) -> Iterator[str]:
    """The names in nested lists of keys; of a list of one array's keys the first says it."""
    stack = [keys]
    while stack:
        part = stack.pop()
        if type(part) is not list:
            yield _name(part)
        elif part and type(part[0]) is tuple and _name(part[0]) == _name(part[-1]):
            yield _name(part[0])
        else:
            stack.extend(part)


def _name(key: Any) -> str:
    return str(key[0] if type(key) is tuple and key else key)


def _given(graph: Any, name: str) -> frozenset[str]:
    """The layers of which the task of a layer is given pieces."""
    mapping = getattr(graph.layers[name], "mapping", None)
    tasks = list(mapping.values()) if type(mapping) is dict else []
    needs = (need for task in tasks for need in getattr(task, "dependencies", ()))
    return frozenset(map(_name, needs)) & {str(layer) for layer in graph.layers}


def _ends(graph: Any) -> frozenset[str]:
    needed = {name for needs in graph.dependencies.values() for name in needs}
    return frozenset(str(name) for name in graph.layers if name not in needed)
