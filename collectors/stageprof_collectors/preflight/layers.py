"""Layers of a graph as they are: how many tasks they have, and which become part of others."""

from __future__ import annotations

import keyword
import math
from collections import defaultdict
from collections.abc import Collection, Container, Mapping
from typing import Any

from stageprof_collectors.account.indexing import POSITIONS, SHUFFLE, SPLIT, in_order
from stageprof_collectors.findings.calling import PLAIN, Calling
from stageprof_collectors.preflight.plan import HELD
from stageprof_runtime.kinds import package_of
from stageprof_runtime.made import prefix_of

#: The layers that each layer needs, or that need it.
Needs = Mapping[Any, Collection[Any]]


def ends(graph: Any) -> set[Any]:
    """Names of layers that do not become part of the one layer that needs them, about as Dask does.

    Working it out exactly takes longer than anybody waits where there are hundreds of them.
    """
    users: defaultdict[Any, list[Any]] = defaultdict(list)
    for name, needs in graph.dependencies.items():
        for need in needs:
            users[need].append(name)
    layers = graph.layers
    return {
        name
        for name, layer in layers.items()
        if not (
            is_blockwise(layer)
            and len(users[name]) == 1
            and is_blockwise(layers.get(users[name][0]))
        )
    }


def held(name: Any, needs: Needs, users: Needs, left: Container[Any]) -> int:
    """Pieces of its size that a task of a layer holds at once, at least.

    What needs nothing has none but its own. The first step of a reduction makes hardly anything of
    the piece that it is given, though Dask notes the chunks of that for it; what comes before it in
    the same task may hold two.

    Args:
        name: the layer's.
        needs: what each layer of the graph needs.
        users: what needs each of them.
        left: names of layers that have not become part of another.
    """
    mine, after = needs.get(name, ()), users.get(name, ())
    if _reduces(name) or not after or not all(map(_reduces, after)):
        return HELD if mine else 1
    inside = (need for need in mine if need not in left)
    return HELD if any(needs[need] for need in inside) else 1


def _reduces(name: Any) -> bool:
    return prefix_of(str(name)).endswith(("-aggregate", "-partial"))


def of_bag(name: str, layer: Any) -> bool:
    """Whether what a layer that is no array's gives out are partitions, numbered from 0."""
    if is_blockwise(layer):
        return len(layer.output_indices) == 1
    mapping = getattr(layer, "mapping", None)
    keys = (k for k in mapping if type(k) is tuple) if type(mapping) is dict else iter(())
    return any(list(map(type, key)) == [str, int] and key[0] == name for key in keys)


def called(layer: Any) -> Calling:
    """How calls of `delayed` in a layer that is built are called; the first one says it."""
    mapping = getattr(layer, "mapping", None)
    task = next(iter(mapping.values()), None) if type(mapping) is dict else None
    if package_of(type(task)) != "dask":
        return PLAIN
    args, given = getattr(task, "args", ()), getattr(task, "kwargs", None)
    if type(given) is dict and "dask_kwargs" in given:  # of Dask until 2025.4: a call of the call
        args, given = args[1:], given["dask_kwargs"]
    return Calling(futures=False, several=len(args) > 1, keywords=names(given))


def names(given: Any) -> tuple[str, ...]:
    """Of what calls are given by name the names, as far as code can have them."""
    known = [name for name in given if type(name) is str] if type(given) is dict else []
    return tuple(name for name in known if name.isidentifier() and not keyword.iskeyword(name))


def is_blockwise(layer: Any) -> bool:
    """Whether it is one of blocks, which knows its keys before it has tasks."""
    return type(layer).__name__ == "Blockwise"


def output(layer: Any) -> int | None:
    """How many tasks a layer has; None: it cannot tell before it is built."""
    mapping = getattr(layer, "mapping", None)
    if type(mapping) is dict:
        return len(mapping)
    dims = getattr(layer, "dims", None)
    if is_blockwise(layer) and type(dims) is dict:
        if layer.output_blocks:  # of those that are needed
            return len(layer.output_blocks)
        return math.prod(int(dims[i]) for i in layer.output_indices if i in dims)
    return tasks_of_output(layer)


def tasks_of_output(layer: Any) -> int | None:
    """Tasks of a layer that is not built: what it gives out is at least so many."""
    try:
        return len(layer.get_output_keys())
    except Exception:  # it cannot tell before it is built
        return None


def tasks_in_order(layer: Any) -> int:
    """About how many tasks a layer would have if what it indexes by were in order.

    0: it indexes by no positions.
    """
    mapping = getattr(layer, "mapping", None)
    if type(mapping) is not dict:
        return 0
    positions = sum(type(key) is str and key.startswith(POSITIONS) for key in mapping)
    prefixes = {key: prefix_of(_name(key)) for key in mapping} if positions else {}
    splits = [mapping[key] for key, prefix in prefixes.items() if prefix == SPLIT]
    if not splits or SHUFFLE in prefixes.values():  # of a shuffle the order is what was asked for
        return 0
    sources = {on for task in splits for on in task.dependencies if type(on) is tuple}
    joins = len(mapping) - positions - len(splits)
    return in_order(len(splits), positions, joins, len(sources))


def _name(key: Any) -> str:
    """The name in a key that is a tuple."""
    return key[0] if type(key) is tuple and key and type(key[0]) is str else ""
