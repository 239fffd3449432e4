"""What cProfile counted, shared out among the steps of the computation.

cProfile knows of each function by whom it was called, and how long that took, but not what was done
meanwhile. A function of Dask's may name its step, as for the sampler; any other is at the step of
who called it, and where callers are at several it is shared out by the time that it took for each,
as gprof does it. All sums are cProfile's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, Final, NamedTuple

from stageprof_runtime.batch import Row
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import CALLED, SAMPLE
from stageprof_runtime.seen import AFFAIR, DASKS, own_step
from stageprof_runtime.stage import OUTSIDE, STEP
from stageprof_runtime.tree import FILE, NAME

#: How often shares are handed on from callers; a chain of calls in circles is longer than this.
ROUNDS: Final = 60
#: Shares below this are nobody's.
LEAST: Final = 1e-4
#: Rows that are told, of the calls with most time; how many are not is told too.
MOST: Final = 20_000

#: Our own functions around the user's program.
_FACES: Final = (
    "stageprof/profile.py", "stageprof/program.py", "stageprof/outcome.py",
    "stageprof_runtime/counting.py",
)  # fmt: skip
_BUILD: Final = STEP["build"]

Shares = dict[int, float]
#: name, file and first line, as pstats has them
Label = tuple[str, str, int]


class Edge(NamedTuple):
    """Calls of one function by another (or by nobody that was seen): numbers as in `event`."""

    function: int
    by: int
    calls: int
    primitive: int
    own: int
    total: int


def rows_of(stats: Iterable[Any]) -> list[Row]:
    """The rows of CALLED for what `cProfile.Profile.getstats` gives."""
    entries = [entry for entry in stats if not _ours(entry.code)]
    numbers = {id(entry.code): i for i, entry in enumerate(entries)}
    edges = list(_edges(entries, numbers))
    named, shares = _steps([entry.code for entry in entries], edges)
    labels = [_label(entry.code) for entry in entries]
    rows: list[Row] = []
    for edge in edges:
        rows.extend(_rows(edge, labels, _inherited(edge, named[edge.function], shares)))
    rows.sort(key=lambda row: -abs(row[-1]))
    if len(rows) > MOST:
        rows[MOST:] = [(SAMPLE, now_ns(), "called.cut", float(len(rows) - MOST))]
    return rows


def _edges(entries: Sequence[Any], numbers: dict[int, int]) -> Iterator[Edge]:
    """What each function was called for by each other, and what is left: by nobody, number -1.

    Where functions call one another in circles what is left may be negative: the times that each is
    called for overlap, and the sum must be the function's own time.
    """
    left = {i: [*_figures(entry)] for i, entry in enumerate(entries)}
    for by, entry in enumerate(entries):
        for call in entry.calls or ():
            function = numbers.get(id(call.code))
            if function is None:
                continue
            figures = _figures(call)
            for i, figure in enumerate(figures):
                left[function][i] -= figure
            yield Edge(function, by, *figures)
    for function, rest in left.items():
        if any(rest):
            yield Edge(function, -1, *rest)


def _figures(entry: Any) -> tuple[int, int, int, int]:
    calls = entry.callcount
    own, total = round(entry.inlinetime * 1e9), round(entry.totaltime * 1e9)
    return calls, calls - entry.reccallcount, own, total


def _steps(codes: Sequence[Any], edges: Sequence[Edge]) -> tuple[list[int], list[Shares]]:
    """For each function the step that it names, and which part of its time was at which."""
    named = [own_step(code) if isinstance(code, CodeType) else 0 for code in codes]
    by: list[list[Edge]] = [[] for _ in codes]
    for edge in edges:
        if edge.by != edge.function:
            by[edge.function].append(edge)
    shares: list[Shares] = [{} for _ in codes]
    for _ in range(ROUNDS):
        before = shares
        shares = [_share(step, by[i], before) for i, step in enumerate(named)]
        if all(map(_alike, before, shares)):
            break
    return named, shares


def _share(named: int, by: Sequence[Edge], shares: Sequence[Shares]) -> Shares:
    """The steps of a function by those of its callers."""
    if named in (0, DASKS):
        found: Shares = {}
        for edge in by:
            for step, part in _inherited(edge, named, shares).items():
                found[step] = found.get(step, 0.0) + part * max(edge.total, 1)
        whole = sum(found.values())
        return {step: part / whole for step, part in found.items() if part > LEAST * whole}
    return {named: 1.0}


def _inherited(edge: Edge, named: int, shares: Sequence[Shares]) -> Shares:
    """The steps at which a function was while one caller called it."""
    if named not in (0, DASKS):
        return {named: 1.0}
    theirs = shares[edge.by] if edge.by >= 0 else {OUTSIDE: 1.0}
    if named == 0 or OUTSIDE not in theirs:
        return theirs
    # A function of Dask's without a name of its own builds, where the user calls it.
    return {k: v for k, v in theirs.items() if k not in (OUTSIDE, _BUILD)} | {
        _BUILD: theirs[OUTSIDE] + theirs.get(_BUILD, 0.0)
    }


def _alike(one: Shares, other: Shares) -> bool:
    return one.keys() == other.keys() and all(abs(one[k] - other[k]) < LEAST for k in one)


def _rows(edge: Edge, labels: Sequence[Label], steps: Shares) -> Iterator[Row]:
    """The rows of one edge: its figures cut by step, without remainder."""
    by = labels[edge.by] if edge.by >= 0 else ("", "", 0)
    rest = list(edge[2:])
    parts = sorted(steps.items(), key=lambda part: part[1]) or [(0, 1.0)]
    for step, part in parts[:-1]:
        mine = [round(figure * part) for figure in edge[2:]]
        rest = [whole - taken for whole, taken in zip(rest, mine, strict=True)]
        if any(mine):
            yield (CALLED, _told(step), *labels[edge.function], *by, *mine)
    if any(rest):
        yield (CALLED, _told(parts[-1][0]), *labels[edge.function], *by, *rest)


def _told(step: int) -> int:
    return OUTSIDE if step == AFFAIR else step


def _ours(code: Any) -> bool:
    """Whether it is a function that begins or ends the region: what it calls is the program's."""
    file = code.co_filename.replace("\\", "/") if isinstance(code, CodeType) else ""
    return file.endswith(_FACES) or "/stageprof/commands/" in file


def _label(code: Any) -> Label:
    """As pstats names a function; one of C's has the file "~"."""
    if isinstance(code, CodeType):
        return code.co_qualname[:NAME], code.co_filename[:FILE], code.co_firstlineno
    return str(code)[:NAME], "~", 0
