"""Which part of the time of tasks is spent inside some functions, as their stacks were seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.profiles.looks import Share, share_of
from stageprof_collectors.profiles.nodes import Frame, Nodes
from stageprof_collectors.storage.columns import Ints
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What the path of a function on the stack has in it, by kind; the outermost function counts.
Paths = Mapping[str, Collection[str]]

#: The kind of a node that is inside of none.
NONE: Final = -1


def inside(recording: Recording, paths: Paths, least: int = 0) -> dict[str, dict[str, Share]]:
    """By kind: the part of the time of tasks, by prefix, in which a function of it was running.

    Of prefixes that were seen at work, and in a function of the kind in `least` looks.
    """
    found = parts(recording, _kinds(recording.nodes, paths), least)
    return {kind: found[i] for i, kind in enumerate(paths) if i in found}


def parts(recording: Recording, kinds: Ints, least: int = 0) -> dict[int, dict[str, Share]]:
    """The same by numbers of kinds; `kinds` says of each node which it is inside of."""
    flame, strings = recording.store.table("flame"), recording.store.strings
    rows = np.flatnonzero(flame["step"] == STEP["compute"])
    at = kinds[recording.nodes.of(flame["place"][rows], flame["node"][rows])]
    found: dict[int, dict[str, Share]] = {}
    for prefix in np.unique(flame["name"][rows]).tolist():
        mine = flame["name"][rows] == prefix
        count, total = flame["count"][rows[mine]], flame["total"][rows[mine]]
        if count.sum() <= 0 or total.sum() <= 0:
            continue
        for number in np.unique(at[mine][at[mine] != NONE]).tolist():
            seen = at[mine] == number
            if count[seen].sum() >= least:
                part = min(1.0, float(total[seen].sum() / total.sum()))
                found.setdefault(number, {})[strings[prefix]] = share_of(part, int(count.sum()))
    return found


def _kinds(nodes: Nodes, paths: Paths) -> Ints:
    """Of each node of the tree of stacks which kind it is inside of."""
    found = np.full(len(nodes), NONE, np.int64)
    for node, (frame, around) in enumerate(zip(nodes.frames, nodes.parent.tolist(), strict=True)):
        kind = found[around] if around >= 0 else NONE
        found[node] = _kind(frame, paths) if kind == NONE else kind
    return found


def _kind(frame: Frame, paths: Paths) -> int:
    file = frame.file.replace("\\", "/")
    kinds = enumerate(paths.values())
    return next((n for n, parts in kinds if any(part in file for part in parts)), NONE)
