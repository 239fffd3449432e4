"""Whose looks from outside are: the task that a thread ran when its stack was seen.

The watch's instants are some milliseconds off, and tasks may be as short. So the function at which
a stack begins has its say: it must be one that looks from within saw at tasks of that prefix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.storage.columns import Ints
from stageprof_collectors.storage.rows import by_thread
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Columns
    from stageprof_collectors.profiles.nodes import Nodes
    from stageprof_collectors.recording import Recording

COMPUTE: Final = STEP["compute"]
#: A look may be so far, ns, outside the run that it is of.
SLACK: Final = 20_000_000
#: No clock shows more, ns; a recording may claim any number.
_AGE: Final = 2**61


class Functions:
    """The functions of a tree of stacks.

    Attributes:
        number: of the function of each node, whatever its line.
        root: number of the function of the outermost node around each node.
        python: the innermost node around each node, or itself, that is not C.
    """

    def __init__(self, nodes: Nodes) -> None:
        size, numbers = len(nodes), dict[tuple[str, str], int]()
        named = [numbers.setdefault((f.name, f.file), len(numbers)) for f in nodes.frames]
        self.number: Ints = np.array(named, np.int64)
        self.root: Ints = self.number.copy()
        self.python: Ints = np.arange(size)
        for node, around in enumerate(nodes.parent.tolist()):
            if around >= 0:
                self.root[node] = self.root[around]
                if of_c(nodes.frames[node].file, nodes.frames[node].line):
                    self.python[node] = self.python[around]


def of_c(file: str, line: int) -> bool:
    """Whether a frame is one of C, which has a file and no line."""
    return bool(file) and line == 0


def prefixes(recording: Recording, functions: Functions, within: Columns, rows: Columns) -> Ints:
    """Of each look at a thread the text of the prefix of its task; -1 if that is not known.

    Args:
        recording: that of both.
        functions: those of its tree.
        within: looks from within.
        rows: place, thread, start and node of others.
    """
    timeline = recording.timeline
    process, runs = timeline.gil.process, timeline.runs
    names, roots = _names(recording, within), _roots(recording, functions, rows)
    seen = _seen(recording, functions, within)
    of_run = np.where(runs["wplace"] >= 0, process[np.maximum(runs["wplace"], 0)], -1)
    running = by_thread(of_run, runs["thread"])
    found = np.full(len(roots), -1)
    for which, mine in by_thread(process[rows["place"]], rows["thread"]).items():
        theirs = running.get(which)
        if theirs is not None and which[0] in seen:
            at = np.clip(rows["start"][mine], -_AGE, _AGE)
            spans = runs["start"][theirs], runs["stop"][theirs], names[theirs]
            found[mine] = _of_thread(*spans, at, roots[mine], seen[which[0]])
    return found


def _of_thread(begun: Ints, over: Ints, names: Ints, at: Ints, roots: Ints, seen: Ints) -> Ints:
    """The names of a thread's runs at some instants: of the run then, the next, or that before."""
    order = np.argsort(begun, kind="stable")
    last = np.searchsorted(begun[order], at, side="right") - 1
    found = np.full(len(at), -1)
    for step in (0, 1, -1):
        there = (last + step >= 0) & (last + step < len(order))
        run = order[np.clip(last + step, 0, len(order) - 1)]
        near = (begun[run] - SLACK <= at) & (at <= over[run] + SLACK)
        fits = there & near & np.isin(_both(names[run], roots), seen)
        found = np.where((found < 0) & fits, names[run], found)
    return found


def _both(names: Ints, roots: Ints) -> Ints:
    """A name and a function in one number; both are numbers of what is there."""
    return (names << 32) | roots


def _names(recording: Recording, within: Columns) -> Ints:
    """Of each run the text of its prefix, as looks from within have it; -1: they saw none."""
    strings, layered = recording.store.strings, recording.layered
    present = np.unique(within["name"][within["step"] == COMPUTE]).tolist()
    index = {strings[i]: i for i in present if strings[i]}
    codes = np.array([index.get(prefix, -1) for prefix in layered.prefixes], np.int64)
    return codes[layered.of] if len(codes) else np.zeros(0, np.int64)


def _roots(recording: Recording, functions: Functions, rows: Columns) -> Ints:
    return functions.root[recording.nodes.of(rows["place"], rows["node"])]


def _seen(recording: Recording, functions: Functions, within: Columns) -> dict[int, Ints]:
    """By process: with what functions looks from within saw tasks of each name begin."""
    tasks = np.flatnonzero(within["step"] == COMPUTE)
    rows = {name: within[name][tasks] for name in ("place", "node", "name")}
    both = _both(rows["name"], _roots(recording, functions, rows))
    process = recording.timeline.gil.process[rows["place"]]
    return {p: np.unique(both[process == p]) for p in np.unique(process).tolist()}


def numbered(first: Ints, second: Ints) -> Ints:
    """Which of the different pairs of two columns each row is."""
    _, row = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
    return row.reshape(-1)


__all__ = ["COMPUTE", "Functions", "numbered", "of_c", "prefixes"]
