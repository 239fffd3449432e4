"""What threads were seen doing: stacks with the time that was spent in them, inert.

A look stands for the time since the look before it. The kinds of work of `stopped` and `stack` make
three shares: `python` runs bytecode, or loops over rows or Python objects; `native` is in a call or
in C code; `waiting` uses no processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.profiles.nodes import Frame, Nodes
from stageprof_collectors.storage.columns import Ints
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError
from stageprof_runtime.stack import CALL, LIBRARY
from stageprof_runtime.stage import STEPS, Stage
from stageprof_runtime.stopped import WAITING

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

PYTHON_SHARE, NATIVE_SHARE, WAITING_SHARE = range(3)
#: No number of ns or of looks that a recording claims counts for more.
_LARGEST: Final = 2.0**62
_NAMES: Final = 8


class Took(NamedTuple):
    """What was spent in a stack."""

    seconds: float
    looks: int


class Shares(NamedTuple):
    """Parts of one."""

    python: float
    native: float
    waiting: float


@dataclass(frozen=True)
class Flame:
    """Looks at some threads, by node of the tree of stacks.

    Attributes:
        nodes: the tree.
        own: seconds spent right in each node, by share: an array of three rows.
        looks: how many looks saw each node innermost.
        sides: what was asked for ("construction", say), for a heading.
    """

    nodes: Nodes
    own: Floats
    looks: Ints
    sides: str = ""

    def __bool__(self) -> bool:
        return bool(self.looks.any() or self.own.any())

    @property
    def seconds(self) -> float:
        """Seconds of all looks together."""
        return float(self.own.sum())

    @cached_property
    def total(self) -> Floats:
        """Seconds spent in each node with what it called, by share."""
        total, parent, levels = self.own.copy(), self.nodes.parent, self.nodes.levels
        for start, stop in list(pairwise(levels))[::-1]:
            inner = np.flatnonzero(parent[start:stop] >= 0) + start
            for row in total:
                np.add.at(row, parent[inner], row[inner])
        return total

    @property
    def shares(self) -> Shares:
        """Which parts of the time were Python, native code and waiting; zeros without looks."""
        whole = self.seconds
        return Shares(*((self.own.sum(axis=1) / whole).tolist() if whole else (0.0, 0.0, 0.0)))

    @cached_property
    def stacks(self) -> Mapping[tuple[Frame, ...], Took]:
        """The stacks that were seen, from the outermost frame inward."""
        seconds, looks = self.own.sum(axis=0), self.looks
        seen = np.flatnonzero((seconds > 0) | (looks > 0)).tolist()
        return {self.nodes.stack(i): Took(float(seconds[i]), int(looks[i])) for i in seen}


def flame(
    recording: Recording,
    stage: str | None = None,
    prefix: str | None = None,
    worker: str | None = None,
) -> Flame:
    """The looks of a recording, or of one stage, task prefix or worker; see `Recording.flame`."""
    sides = ", ".join(filter(None, (stage, prefix, worker)))
    return flame_of(recording, rows_of(recording, stage, prefix, worker), sides)


def rows_of(
    recording: Recording, stage: str | None, prefix: str | None, worker: str | None
) -> Ints:
    """Which rows of the table `flame` are of a stage, prefix and worker; None is any.

    Raises:
        UsageError: there is no such stage, prefix or worker.
    """
    table = recording.looked
    rows = np.ones(len(table["node"]), np.bool_)
    if stage is not None:
        rows &= np.isin(table["step"], steps_of(stage))
    if prefix is not None:
        rows &= table["name"] == _prefix(recording, table["name"], prefix)
    if worker is not None:
        rows &= np.isin(table["place"], _places(recording, worker))
    return np.flatnonzero(rows)


def flame_of(recording: Recording, rows: Ints, sides: str = "") -> Flame:
    """The flame of some rows of the table `flame`."""
    table, nodes = recording.looked, recording.nodes
    chosen = {name: column[rows] for name, column in table.items()}
    at = nodes.of(chosen["place"], chosen["node"])
    seconds = np.clip(chosen["total"].astype(np.float64), 0.0, _LARGEST) / 1e9
    share = chosen["share"]
    size = len(nodes)
    own: Floats = np.bincount(share * size + at, seconds, 3 * size).reshape(3, size).astype(float)
    counts = np.clip(chosen["count"].astype(np.float64), 0.0, _LARGEST)
    looks = np.minimum(np.bincount(at, counts, size), _LARGEST).astype(np.int64)
    return Flame(nodes, own, looks, sides)


def shares_of(recording: Recording, how: Ints) -> Ints:
    """The share that each kind of work counts for."""
    kinds = {CALL: NATIVE_SHARE, LIBRARY: NATIVE_SHARE, WAITING: WAITING_SHARE}
    out = np.full(len(how), PYTHON_SHARE)
    for kind, share in kinds.items():
        out[how == _text(recording, kind)] = share
    return out


def _text(recording: Recording, text: str) -> int:
    try:
        return recording.store.strings.index(text)
    except ValueError:
        return -1


def steps_of(stage: str) -> list[int]:
    """The codes of a stage's steps.

    Raises:
        UsageError: there is no such stage.
    """
    found = [code for code, (of, _) in enumerate(STEPS) if of == stage]
    if not found:
        raise UsageError(f"stage {safe(stage)!r}", expected="one of " + ", ".join(Stage))
    return found


def _prefix(recording: Recording, names: Ints, prefix: str) -> int:
    """The text of a prefix of which there are looks.

    Raises:
        UsageError: there are none.
    """
    strings = recording.store.strings
    found = {strings[i]: i for i in np.unique(names).tolist()}
    if prefix not in found:
        raise UsageError(
            f"no look at a task of prefix {safe(prefix)!r}", expected=_some(sorted(found))
        )
    return int(found[prefix])


def _some(names: list[str]) -> str:
    """A few of the names that would do."""
    known = [safe(name) for name in names if name]
    return ", ".join(known[:_NAMES]) + (", ..." if len(known) > _NAMES else "") or "none has any"


def _places(recording: Recording, worker: str) -> list[int]:
    """The places of a worker, which may be named by its address or by its name.

    Raises:
        UsageError: the recording has no such worker.
    """
    names = recording.worker_names
    wanted = {worker, *(address for address, name in names.items() if name == worker)}
    places = recording.store.places
    found = [i for i, place in enumerate(places) if place.role == "worker" and place.name in wanted]
    if not found:
        known = [place.name for place in places if place.role == "worker"]
        raise UsageError(f"no worker {safe(worker)!r}", expected=_some(known))
    return found


__all__ = ["Flame", "Frame", "Shares", "Took", "flame", "flame_of", "rows_of", "steps_of"]
