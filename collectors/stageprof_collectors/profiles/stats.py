"""A profile by function and caller, in the form of the standard library's `pstats`.

From calls that were counted, if the recording has them, else from stacks that were looked at: there
a "call" is a look, and a function of the user's is apart for each line that was seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.profiles.flame import Flame, steps_of
from stageprof_collectors.profiles.session import looked
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: File, line and name of a function, as pstats has it.
Function = tuple[str, int, str]
#: Calls that were not from within the function itself, all calls, seconds in it alone, and seconds
#: with what it called.
Figures = tuple[int, int, float, float]
#: The same and what each caller called it for; there all calls come first.
Stats = dict[Function, tuple[int, int, float, float, dict[Function, Figures]]]

_Seconds = defaultdict[Function, float]

#: Around all that nobody was seen to call.
REGION: Final[Function] = ("~", 0, "<profiled region>")
_LIMIT: Final = 300
#: Functions that stand around one at another stage, one around the other.
_CIRCLES: Final = 60
#: No figure that a recording claims counts for more.
_LARGEST: Final = 2**53


@dataclass
class _Sum:
    primitive: int = 0
    calls: int = 0
    own: float = 0.0
    total: float = 0.0
    callers: dict[Function, list[float]] = field(default_factory=dict)

    def add(self, primitive: int, calls: int, own: float, total: float) -> None:
        self.primitive += primitive
        self.calls += calls
        self.own += own
        self.total += total

    def call(self, by: Function, primitive: int, calls: int, own: float, total: float) -> None:
        known = self.callers.setdefault(by, [0, 0, 0.0, 0.0])
        for i, figure in enumerate((calls, primitive, own, total)):
            known[i] += figure


class _Sums(dict[Function, _Sum]):
    def __missing__(self, function: Function) -> _Sum:
        return self.setdefault(function, _Sum())

    def stats(self) -> Stats:
        return {function: _figures(found) for function, found in self.items()}


def counted(recording: Recording) -> bool:
    """Whether calls were counted (`deterministic`), and not only stacks looked at."""
    return recording.store.rows("called") > 0


def stats(
    recording: Recording,
    stage: str | None = None,
    prefix: str | None = None,
    worker: str | None = None,
) -> Stats:
    """The functions of a recording or of one stage: counted calls if there are any, else looks.

    Calls are counted in the region's thread only: of one prefix or worker there are looks.

    Raises:
        NoLooks: nothing was seen of the stage.
        UsageError: there is no such stage, prefix or worker.
    """
    if prefix is None and worker is None and counted(recording):
        return _of_calls(recording, stage)
    if prefix is None and worker is None:
        return of_flame(looked(recording, stage))
    return of_flame(recording.flame(stage, prefix, worker))


# -- from looks -----------------------------------------------------------------------------------


def of_flame(flame: Flame) -> Stats:
    """The functions of a flame."""
    sums = _Sums()
    own, total = flame.own.sum(axis=0), flame.total.sum(axis=0)
    looks = _looks_within(flame)
    known = {f: _function(f.file, f.line, f.name) for f in set(flame.nodes.frames)}
    functions = [known[f] for f in flame.nodes.frames]
    parent = flame.nodes.parent.tolist()
    for node in np.flatnonzero((total > 0) | (looks > 0)).tolist():
        function, around = functions[node], parent[node]
        outermost = not _within(function, around, parent, functions)
        figures = (int(looks[node]) if outermost else 0, int(looks[node]), float(own[node]))
        sums[function].add(*figures, float(total[node]) if outermost else 0.0)
        by = functions[around] if around >= 0 else REGION
        sums[function].call(by, *figures, float(total[node]) if outermost else 0.0)
    return _rooted(sums).stats()


def _looks_within(flame: Flame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Looks that saw each node on the stack."""
    looks, nodes = flame.looks.copy(), flame.nodes
    for start, stop in list(zip(nodes.levels, nodes.levels[1:], strict=False))[::-1]:
        inner = np.flatnonzero(nodes.parent[start:stop] >= 0) + start
        np.add.at(looks, nodes.parent[inner], looks[inner])
    return np.minimum(looks, _LARGEST)


def _within(function: Function, node: int, parent: list[int], functions: list[Function]) -> bool:
    """Whether a function is on the stack already, around one of its own calls."""
    while node >= 0:
        if functions[node] == function:
            return True
        node = parent[node]
    return False


# -- from calls -----------------------------------------------------------------------------------


def _of_calls(recording: Recording, stage: str | None) -> Stats:
    steps = set(steps_of(stage)) if stage is not None else None
    sums, callers = _Sums(), _Callers()
    for step, function, by, figures in _calls(recording):
        if figures[3] > 0:
            callers[function][by] += figures[3]
        if steps is None or step in steps:
            sums[function].add(*figures)
            if by != REGION or figures[3] > 0:
                sums[function].call(by, *figures)
    if not sums:
        raise UsageError(
            f"no call was counted at the stage {stage}", do="leave --stage away to see all"
        )
    return _rooted(sums, callers).stats()


def _calls(
    recording: Recording,
) -> Iterator[tuple[int, Function, Function, tuple[int, int, float, float]]]:
    """Step, function, caller and figures of the calls that were counted."""
    table, strings = recording.store.table("called"), recording.store.strings
    names = ("step", "name", "file", "line", "by_name", "by_file", "by_line")
    columns = [table[name].tolist() for name in (*names, "primitive", "calls", "own", "total")]
    function = cache(lambda file, line, name: _function(strings[file], line, strings[name]))
    for step, name, file, line, by_name, by_file, by_line, *took in zip(*columns, strict=True):
        by = function(by_file, by_line, by_name) if strings[by_name] else REGION
        primitive, calls, own, total = (min(max(n, -_LARGEST), _LARGEST) for n in took)
        yield step, function(file, line, name), by, (primitive, calls, own / 1e9, total / 1e9)


class _Callers(dict[Function, _Seconds]):
    """For whom each function was called how long, at whatever stage."""

    def __missing__(self, function: Function) -> _Seconds:
        return self.setdefault(function, _Seconds(float))


# -- both -----------------------------------------------------------------------------------------


def _rooted(sums: _Sums, callers: _Callers | None = None) -> _Sums:
    """Callers that have no time at this stage stand around what they called, up to the region.

    Where one was called by several, what it called is shared out among them.
    """
    here = set(sums)
    missing = _Seconds(float)
    for found in list(sums.values()):
        for by, figures in found.callers.items():
            if by not in here and by != REGION:
                missing[by] += max(figures[3], 0.0)
    for _ in range(_CIRCLES):
        missing = _above(sums, missing, callers or _Callers(), here)
    tops = [found.callers[REGION][3] for found in sums.values() if REGION in found.callers]
    sums[REGION].add(1, 1, 0.0, sum(max(total, 0.0) for total in tops))
    return sums


def _above(sums: _Sums, missing: _Seconds, callers: _Callers, here: set[Function]) -> _Seconds:
    """Add functions with the time of what they called; those around them that are not there."""
    above = _Seconds(float)
    for function, total in missing.items():
        around = callers.get(function) or {REGION: 1.0}
        whole = sum(around.values())
        sums[function].total += total
        sums[function].calls = sums[function].primitive = 1
        for by, part in around.items():
            mine = total * part / whole
            sums[function].call(by, 1, 1, 0.0, mine)
            if by not in here and by != REGION and mine > 0:
                above[by] += mine
    return above


def _figures(found: _Sum) -> tuple[int, int, float, float, dict[Function, Figures]]:
    callers: dict[Function, Figures] = {
        by: (int(f[0]), int(f[1]), max(f[2], 0.0), max(f[3], 0.0))
        for by, f in found.callers.items()
    }
    calls = max(found.calls, 0)
    primitive = min(max(found.primitive, 0), calls)
    return primitive, calls, max(found.own, 0.0), max(found.total, 0.0), callers


def _function(file: str, line: int, name: str) -> Function:
    return safe(file, limit=_LIMIT) or "~", max(line, 0), safe(name, limit=_LIMIT)


def seconds(found: Stats) -> float:
    """Seconds of all functions together."""
    return sum(figures[2] for figures in found.values())


__all__ = ["REGION", "Function", "Stats", "counted", "of_flame", "seconds", "stats"]
