"""Which part of the time of tasks is spent inside some libraries, as their stacks were seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from stageprof_collectors.profiles.looks import Share, share_of
from stageprof_collectors.profiles.nodes import Frame, Nodes
from stageprof_collectors.storage.columns import Ints
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What the path of a function on the stack has in it, by kind; the outermost function counts.
Paths = Mapping[str, Collection[str]]


def inside(recording: Recording, paths: Paths, least: int = 0) -> dict[str, dict[str, Share]]:
    """By kind: the part of the time of tasks, by prefix, in which a function of it was running.

    Of prefixes that were seen at work, and in a function of the kind in `least` looks.
    """
    flame, strings = recording.store.table("flame"), recording.store.strings
    rows = np.flatnonzero(flame["step"] == STEP["compute"])
    nodes = recording.nodes
    at = _kinds(nodes, paths)[nodes.of(flame["place"][rows], flame["node"][rows])]
    found: dict[str, dict[str, Share]] = {}
    for prefix in np.unique(flame["name"][rows]).tolist():
        mine = flame["name"][rows] == prefix
        count, total = flame["count"][rows[mine]], flame["total"][rows[mine]]
        if count.sum() <= 0 or total.sum() <= 0:
            continue
        for number, kind in enumerate(paths):
            seen = at[mine] == number
            if count[seen].sum() >= least:
                part = min(1.0, float(total[seen].sum() / total.sum()))
                found.setdefault(kind, {})[strings[prefix]] = share_of(part, int(count.sum()))
    return found


def _kinds(nodes: Nodes, paths: Paths) -> Ints:
    """Of each node of the tree of stacks which kind it is inside of; -1: none."""
    found = np.full(len(nodes), -1, np.int64)
    for node, (frame, around) in enumerate(zip(nodes.frames, nodes.parent.tolist(), strict=True)):
        found[node] = found[around] if around >= 0 and found[around] >= 0 else _kind(frame, paths)
    return found


def _kind(frame: Frame, paths: Paths) -> int:
    file = frame.file.replace("\\", "/")
    kinds = enumerate(paths.values())
    return next((n for n, parts in kinds if any(part in file for part in parts)), -1)
