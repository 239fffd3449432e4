"""Which part of the time of tasks is spent inside some functions, as their stacks were seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.profiles.looks import Share, share_of
from stageprof_collectors.profiles.nodes import Frame, Nodes, is_library
from stageprof_collectors.storage.columns import Ints
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What the path of a function on the stack has in it, by kind; the outermost function counts. Of
#: some of the functions of a file "path:name", from the function's name what it begins with.
Paths = Mapping[str, Collection[str]]

#: The kind of a node that is inside of none, and of one where another function has taken over.
NONE: Final = -1
LEFT: Final = -2
#: Libraries that work on whole columns.
_ARRAYS: Final = ("/numpy/", "/pandas/", "/pyarrow/")


def inside(recording: Recording, paths: Paths, least: int = 0) -> dict[str, dict[str, Share]]:
    """By kind: the part of the time of tasks, by prefix, in which a function of it was running.

    Of prefixes that were seen at work, and in a function of the kind in `least` looks.
    """
    nodes = recording.nodes
    begins = {frame: _kind(frame, paths) for frame in set(nodes.frames)}
    found = Seen(recording).parts(kinds_of(nodes, begins), least)
    return {kind: found[i] for i, kind in enumerate(paths) if i in found}


def called(recording: Recording, file: str, function: str, after: int = 0) -> float:
    """Of the time in a function of the user's the part in libraries, NumPy and pandas left out.

    `after`: what it does at lines up to this one does not count.
    """
    nodes = recording.nodes
    frames = set(nodes.frames)
    own = {f for f in frames if f.file == file and f.name.rpartition(".")[2] == function}
    begins = {f: 0 for f in own if f.line > after}
    ends = {f for f in frames if is_library(f.file) and not any(x in f.path for x in _ARRAYS)}
    seen = Seen(recording)
    at = kinds_of(nodes, begins, ends)[seen.at]
    left, whole = (float(seen.total[mine].sum()) for mine in (at == LEFT, at != NONE))
    return left / whole if whole > 0 else 0.0


def _kind(frame: Frame, paths: Paths) -> int:
    kinds, at = enumerate(paths.values()), f"{frame.path}:{frame.name}"
    return next((n for n, parts in kinds if any(part in at for part in parts)), NONE)


def kinds_of(nodes: Nodes, begins: Mapping[Frame, int], ends: Collection[Frame] = ()) -> Ints:
    """Of each node of the tree of stacks which kind it is inside of.

    Args:
        nodes: the tree.
        begins: the kind that begins at a frame.
        ends: frames at which any kind ends: from there inward it is `LEFT`.
    """
    found = np.full(len(nodes), NONE, np.int64)
    for node, (frame, around) in enumerate(zip(nodes.frames, nodes.parent.tolist(), strict=True)):
        kind = found[around] if around >= 0 else NONE
        if kind == NONE:
            kind = begins.get(frame, NONE)
        elif frame in ends:
            kind = LEFT
        found[node] = kind
    return found


class Seen:
    """Looks at tasks.

    Attributes:
        at, prefix, count, total: of each: the node, the text of the prefix, looks, ns.
    """

    def __init__(self, recording: Recording) -> None:
        flame = recording.store.table("flame")
        rows = np.flatnonzero(flame["step"] == STEP["compute"])
        self.at = recording.nodes.of(flame["place"][rows], flame["node"][rows])
        self.prefix, self.count, self.total = (
            flame[name][rows] for name in ("name", "count", "total")
        )
        self._strings = recording.store.strings

    def parts(self, kinds: Ints, least: int = 0) -> dict[int, dict[str, Share]]:
        """As `inside`, by the numbers of kinds; `kinds` is of each node, as `kinds_of` has it."""
        at = kinds[self.at]
        found: dict[int, dict[str, Share]] = {}
        for prefix in np.unique(self.prefix).tolist():
            mine = self.prefix == prefix
            looks, took = self.count[mine].sum(), self.total[mine].sum()
            if looks <= 0 or took <= 0:
                continue
            for number in np.unique(at[mine & (at >= 0)]).tolist():
                seen = mine & (at == number)
                if self.count[seen].sum() >= least:
                    part = min(1.0, float(self.total[seen].sum() / took))
                    name = self._strings[prefix]
                    found.setdefault(number, {})[name] = share_of(part, int(looks))
        return found
