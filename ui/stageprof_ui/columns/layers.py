"""Layers: what each took of every stage, and which needs the results of which."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.findings.phrase import at
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import SIX
from stageprof_ui.columns.source import quoted

Ints = NDArray[np.int64]

#: Rows of the table at most: a browser sorts and filters so many at once.
ROWS: Final = 10_000
#: Layers that are drawn at most.
DRAWN: Final = 60
#: Layers below each other at most; more that are as deep are put beside them.
_COLUMN: Final = 14

#: Columns of seconds, by stage.
SECONDS: Final = tuple(f"{stage}_s" for stage in SIX)


@dataclass(frozen=True)
class Network:
    """Which layers need which, placed from left to right.

    Attributes:
        nodes: one row per layer, costliest first: the columns of `layers`, and busy_s, stage (that
            most of it is in), x and y (whole numbers, y from the top).
        edges: source, target (rows of `nodes`), needs (how many tasks' results), direct (False:
            through layers that are not drawn; needs is 0 then).
        left_out: layers that have tasks and are not drawn.
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame
    left_out: int

    @property
    def width(self) -> int:
        """How many layers are beside each other."""
        return int(self.nodes["x"].max()) + 1 if len(self.nodes) else 0

    @property
    def height(self) -> int:
        """How many are below each other, at most."""
        return int(self.nodes["y"].max()) + 1 if len(self.nodes) else 0


def layers(recording: Recording, *, sources: bool = False) -> pd.DataFrame:
    """One row per layer, costliest first; what belongs to none is the last.

    Columns: number (its index in `Recording.groups.rows`), prefix, made at, code (what stands
    there; "" without `sources`), tasks, wall_s, before_first_task_s, construction_s ...
    execution_s, bytes, layer. Texts are safe to show.
    """
    frame = recording.layers()
    number = {tuple(row): i for i, row in enumerate(recording.groups.rows)}
    keys = zip(*(frame[name].tolist() for name in ("layer", "prefix", "file", "line")), strict=True)
    places = list(zip(frame["file"].tolist(), frame["line"].tolist(), strict=True))
    code = quoted(recording, places) if sources else {}
    found = {
        "number": [number[key] for key in keys],
        "prefix": [_text(prefix) or "(no layer)" for prefix in frame["prefix"]],
        "made at": [_text(at(file, line)) for file, line in places],
        "code": [code.get(place, "") for place in places],
        "tasks": frame["tasks"],
        "wall_s": frame["wall_s"],
        "before_first_task_s": frame["before_first_task_s"],
        **{name: frame[name] for name in SECONDS},
        "bytes": frame["bytes"],
        "layer": [_text(layer) for layer in frame["layer"]],
    }
    return pd.DataFrame(found)


def _text(value: object) -> str:
    return safe(value, limit=200) if value else ""


def network(recording: Recording, table: pd.DataFrame, *, most: int = DRAWN) -> Network:
    """The layers that ran, at most so many, and the needs between them.

    Args:
        recording: what ran.
        table: its layers as `layers` has them.
        most: how many are drawn.
    """
    ran = table[(table["tasks"] > 0) & (table["number"] > 0)]
    nodes = ran.head(most).reset_index(drop=True)
    source, target, needs = dependencies(recording)
    count = max(int(table["number"].max()) if len(table) else 0, len(recording.groups.rows)) + 1
    order, depth = ordered(source, target, count)
    edges = _edges(nodes["number"].tolist(), order, (source, target, needs))
    busy = nodes[list(SECONDS)]
    nodes["busy_s"] = busy.sum(axis=1)
    largest = busy.to_numpy().argmax(axis=1) if len(nodes) else []
    nodes["stage"] = [str(SIX[i]) for i in largest]
    nodes["x"], nodes["y"] = placed([depth[i] for i in nodes["number"]], edges)
    return Network(nodes, edges, len(ran) - len(nodes))


def dependencies(recording: Recording) -> tuple[Ints, Ints, Ints]:
    """Pairs of layers of which the second's tasks needed the first's results, and how many did."""
    needs, of_run = recording.timeline.depends, recording.groups.of_run
    every = len(recording.groups.rows)
    target = np.repeat(of_run, np.diff(needs.first))
    source = of_run[needs.on]
    between = source != target
    pairs, counts = np.unique(source[between] * every + target[between], return_counts=True)
    return pairs // every, pairs % every, counts


def ordered(source: Ints, target: Ints, count: int) -> tuple[list[int], list[int]]:
    """Layers so that each comes after those that it needs, and how deep each is.

    The depth is the number of layers on the longest way to it. Tasks need each other in no circle,
    but layers may; a circle is opened at the layer that ran first.
    """
    after: defaultdict[int, list[int]] = defaultdict(list)
    missing = np.bincount(target, minlength=count).tolist()
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        after[a].append(b)
    depth, done, order = [0] * count, [False] * count, list[int]()
    ready = deque(i for i in range(count) if not missing[i])
    for first in range(count):  # layers are numbered in the order in which they ran
        if not ready and not done[first]:
            ready.append(first)
        while ready:
            i = ready.popleft()
            if done[i]:
                continue
            done[i] = True
            order.append(i)
            for j in after[i]:
                missing[j] -= 1
                if not done[j]:
                    depth[j] = max(depth[j], depth[i] + 1)
                    if not missing[j]:
                        ready.append(j)
    return order, depth


def _edges(numbers: list[int], order: list[int], needs: tuple[Ints, Ints, Ints]) -> pd.DataFrame:
    """Edges between the drawn layers, and those through others."""
    row = {number: i for i, number in enumerate(numbers)}
    before: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for a, b, n in zip(*(column.tolist() for column in needs), strict=True):
        before[b].append((a, n))
    #: of each layer that is not drawn the drawn ones that lead to it, as bits
    behind: defaultdict[int, int] = defaultdict(int)
    found = []
    for i in order:
        direct = {row[a]: n for a, n in before[i] if a in row}
        through = 0
        for a, _ in before[i]:
            if a not in row:
                through |= behind[a]
        if i in row:
            found += [(a, row[i], n, True) for a, n in direct.items()]
            hidden = (a for a in range(len(numbers)) if through >> a & 1 and a not in direct)
            found += [(a, row[i], 0, False) for a in hidden if a != row[i]]
        else:
            behind[i] = through | sum(1 << a for a in direct)
    return pd.DataFrame(found, columns=["source", "target", "needs", "direct"])


def placed(depth: list[int], edges: pd.DataFrame) -> tuple[list[int], list[int]]:
    """Where each node is: x by its depth, y near the nodes that it needs, none on another."""
    by_depth: defaultdict[int, list[int]] = defaultdict(list)
    for i, deep in enumerate(depth):
        by_depth[deep].append(i)
    pairs = zip(edges["target"].tolist(), edges["source"].tolist(), strict=True)
    needs: defaultdict[int, list[int]] = defaultdict(list)
    for target, source in pairs:
        needs[target].append(source)
    x, y, column = [0] * len(depth), [0] * len(depth), 0
    for deep in sorted(by_depth):
        nodes = sorted(by_depth[deep], key=lambda i: _height(needs[i], y))
        for place, i in enumerate(nodes):
            x[i], y[i] = column + place // _COLUMN, place % _COLUMN
        column += -(-len(nodes) // _COLUMN)
    return x, y


def _height(needs: list[int], y: list[int]) -> float:
    """The mean height of what a node needs; those that need nothing come first."""
    return sum(y[i] for i in needs) / len(needs) if needs else -1.0
