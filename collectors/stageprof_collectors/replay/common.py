"""What graphs that are handed over one by one have in common, which together they would have once.

A loop that computes one slice of an array after another hands over the whole array's graph each
time: the scheduler makes tasks of all of it, and keeps those that the slice needs. Layers of which
several graphs have tasks are such a graph's; what they hold besides, nobody has seen, so that they
count with all tasks that ran of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from stageprof_collectors.storage.layered import layer_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: By graph what part of its tasks no other of its group has.
Own = dict[int, float]


def own_parts(recording: Recording, groups: Iterable[Iterable[int]]) -> Own:
    """Of each graph but the first of its group what is its own; those without are left out.

    Args:
        recording: whose tasks.
        groups: indices of graphs that would be handed over together.
    """
    found: Own = {}
    for group in groups:
        graphs = list(group)
        found |= _own(_keys(recording, graphs), graphs)
    return found


def _keys(recording: Recording, graphs: list[int]) -> dict[str, dict[int, set[str]]]:
    """By layer and graph the keys of the tasks that ran."""
    owner, runs = recording.replay.owner, recording.timeline.runs
    rows = np.flatnonzero(np.isin(owner, graphs))
    keys = recording.store.keys(runs["key"][rows])
    found: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for graph, key in zip(owner[rows].tolist(), keys, strict=True):
        found[layer_of(key)][graph].add(key)
    return {name: dict(by_graph) for name, by_graph in found.items()}


def _own(keys: dict[str, dict[int, set[str]]], graphs: list[int]) -> Own:
    alone: defaultdict[int, int] = defaultdict(int)
    shared: defaultdict[int, int] = defaultdict(int)
    for by_graph in keys.values():
        number = len(set().union(*by_graph.values()))
        for graph, mine in by_graph.items():
            if len(by_graph) == 1:
                alone[graph] += len(mine)
            else:
                shared[graph] += number
    return {g: alone[g] / (alone[g] + shared[g]) for g in graphs[1:] if shared[g]}
