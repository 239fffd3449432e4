"""Chains of layers that Dask may fuse: its tasks have the name of the last one, and only that runs.

What the chain begins with is what sets how many pieces there are and how large they are, and its
line is where the user set it. A sum that is fused with what it sums up leaves eight bytes of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: Layers looked at in one graph: some 2 us each.
MOST: Final = 3_000
#: Layers that are followed from one that loads, where each of them is told of what is unused.
FUSED: Final = 20
#: The same of chains: a loop adds a layer each time, and the last of them is what runs.
LONGEST: Final = 500
#: Pieces with which a chain is told of: nobody asks where fewer come from.
LEAST: Final = 50


class Layers(NamedTuple):
    """A graph's layers, and who needs whom."""

    layers: dict[str, Any]
    needs: dict[str, Any]
    users: dict[str, list[str]]

    def loads(self, name: str) -> bool:
        """Whether a layer needs nothing, or only what needs nothing."""
        return all(not self.needs[other] for other in self.needs[name])

    def fused(self, name: str, most: int = FUSED) -> Iterator[str]:
        """A layer and those that Dask may fuse it with.

        As long as one layer alone needs the one before, and all its chunks.
        """
        for _ in range(most):
            yield name
            users = self.users.get(name, [])
            if len(users) != 1 or pieces(self.layers[users[0]]) < pieces(self.layers[name]):
                return
            name = users[0]


class Link(NamedTuple):
    """A row of CHAIN without its time."""

    name: str
    by_name: str
    number: int
    nbytes: int


def layers_of(graph: Any) -> Layers:
    """The layers of a high level graph; none of another, and of very many."""
    layers, needs = getattr(graph, "layers", None), getattr(graph, "dependencies", None)
    if type(layers) is not dict or type(needs) is not dict or len(layers) > MOST:
        return Layers({}, {}, {})
    users: dict[str, list[str]] = {}
    for user, names in needs.items():
        for name in names:
            users.setdefault(name, []).append(user)
    return Layers(layers, needs, users)


def pieces(layer: Any) -> int:
    """How many chunks a layer makes; 0 if that is not known."""
    facts = getattr(layer, "collection_annotations", None)
    return math.prod(map(len, facts["chunks"])) if type(facts) is dict and "chunks" in facts else 0


def links(graph: Any) -> Iterator[Link]:
    """The layers of each chain of a high level graph from its source on, in their order."""
    known = layers_of(graph)
    for name, layer in known.layers.items():
        if type(name) is str and pieces(layer) >= LEAST and _begins(known, name):
            yield from _of_chain(known, name)


def _begins(known: Layers, name: str) -> bool:
    """Whether a layer needs no chunks, but what they are read from at most."""
    return known.loads(name) and not any(pieces(known.layers[x]) for x in known.needs[name])


def _of_chain(known: Layers, source: str) -> Iterator[Link]:
    chain = list(known.fused(source, LONGEST))
    try:
        made = [
            Link(name, source, pieces(layer), _nbytes(layer))
            for name, layer in ((name, known.layers[name]) for name in chain)
        ]
    except Exception:  # chunks of unknown size
        return
    if len(made) > 1:
        yield from made


def _nbytes(layer: Any) -> int:
    """Bytes of the largest chunk of a layer."""
    facts = layer.collection_annotations
    return int(math.prod(map(max, facts["chunks"])) * facts["dtype"].itemsize)
