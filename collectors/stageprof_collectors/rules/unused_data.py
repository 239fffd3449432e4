"""Columns, rows or parts of chunks that are read and thrown away right after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.loading import Loading, loadings
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.looks import Looks
from stageprof_collectors.replay.cost import cost_of, costs_of_runs
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.lines import Line
from stageprof_runtime.loaded import SLICE
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Reading a part of the bytes takes between this much more than its part of the time (texts such as
#: CSV are parsed whole, rows have a cost of their own) and just its part.
LEAST: Final = 0.4
#: A run that kept nothing: its result is smaller than this, or than this part of the largest.
EMPTY_BYTES, EMPTY_SHARE = 2_500, 0.01
_COMPUTE: Final = frozenset({STEP["compute"]})
#: Kinds of what is read that are told here.
_HOW: Final = frozenset({"columns", "filter", SLICE})

_COLUMNS_TEXT: Final = (
    "Each partition is read whole, and all but {used} is dropped right after. Dask cannot tell a "
    "function of your own which columns are needed unless it has a parameter `columns`: give it "
    "one, and read only those (`usecols=` of `pandas.read_csv`, `columns=` of "
    "`pandas.read_parquet`)."
)
_COLUMNS: Final = """\
import dask.dataframe as dd

# {reader}(item, columns=None) reads only these columns
frame = dd.from_map({reader}, inputs, columns={columns})  # all that are needed"""
_FILTER_TEXT: Final = (
    "In {empty} of {runs} partitions no row passes the filter: they are read for nothing. If the "
    "names of your inputs (a date, a region) tell which can hold such rows, read only those. "
    "`dd.read_parquet` skips files by itself if it is given `filters=`."
)
_FILTER: Final = """\
import dask.dataframe as dd

def wanted(item):
    return True  # whether this input can hold rows that pass the filter

frame = dd.from_map({reader}, [item for item in inputs if wanted(item)])"""
_SLICE_TEXT: Final = (
    "Whole chunks are loaded, and all but {used} of their elements is cut away right after. Slice "
    "where you load (most file formats read a part of an array), or choose chunks along the "
    "dimension that you slice."
)
_SLICE: Final = """\
import dask.array as da

# source is what the chunks are loaded from: an array in a file, which is sliced there
x = da.from_array(source, chunks="auto")"""


class _Waste(NamedTuple):
    """Reading for nothing: the layer, what kind, what of each run's time, and the numbers."""

    name: str
    how: str
    label: str
    reader: str
    #: parts of each run's time, at least and at most
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    used: float
    empty: int
    runs: int


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each layer that reads."""
    on_path, least = costs_of_runs(recording, _COMPUTE), limits["share"] * recording.wall
    for loading in loadings(recording):
        if loading.how in _HOW and on_path[loading.rows].sum() >= least:
            waste = _waste(recording, loading)
            if 1 - waste.used >= limits["unused"]:
                yield from _found(recording, waste, limits)


def _waste(recording: Recording, loading: Loading) -> _Waste:
    mine = np.zeros(len(recording.timeline.runs["run"]), np.bool_)
    mine[loading.rows] = True
    high, empty = np.zeros(len(mine)), mine & False
    reader = "" if loading.how == SLICE else loading.by
    if loading.how == "filter":
        empty = mine & _kept_nothing(recording.timeline.runs["nbytes"], mine)
        used, high[empty] = 1 - float(empty.sum() / mine.sum()), 1.0
        low = high * 0.9
    else:
        used = loading.used / max(1, loading.total)
        high[mine] = (1 - used) * _reading(recording, recording.prefixes[loading.rows[0]], reader)
        low = high * LEAST
    what = (loading.layer, loading.how, loading.label, reader)
    return _Waste(*what, low, high, used, int(empty.sum()), len(loading.rows))


def _kept_nothing(nbytes: NDArray[np.int64], mine: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Runs with next to no result beside others with much of one; else nothing can be told."""
    most = int(nbytes[mine].max())
    least = max(EMPTY_BYTES, EMPTY_SHARE * most)
    told = most > 10 * EMPTY_BYTES
    small: NDArray[np.bool_] = (nbytes <= least) & told
    return small


def _reading(recording: Recording, prefix: str, reader: str) -> float:
    """What part of the time of a prefix is in the function that reads; all, if it was not seen."""
    looks = Looks(recording)
    mine = [look for look in looks.all if look.prefix == prefix and look.entry == reader]
    return looks.shares(mine)[prefix].middle if mine else 1.0


def _found(recording: Recording, waste: _Waste, limits: Limits) -> Iterator[Finding]:
    rows = np.flatnonzero(waste.high > 0)
    if not len(rows):
        return
    part = float(waste.high[rows].mean())
    cost = part * cost_of(recording, steps=_COMPUTE, runs=rows.tolist())
    if cost < limits["share"] * recording.wall:
        return
    replay = recording.replay
    low = replay.saving(Change(compute=1 - waste.low))[0]
    high = replay.saving(Change(compute=1 - waste.high))[1]
    saved = min(low, high), high
    line = recording.groups.line_of(waste.name)
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=_headline(recording, waste, line, cost),
        stage=Stage.EXECUTION,
        evidence={"kind": waste.how, "used_share": waste.used, "tasks": waste.runs},
        cost_s=cost,
        saving_s=saved,
        fix=_fix(waste),
        where=Where(line.file, line.line, "", waste.name),
        cause=f"layer:{waste.name}",
    )


def _headline(recording: Recording, waste: _Waste, line: Line, cost: float) -> str:
    reader = f"`{waste.reader}`" if waste.reader else "an array"
    where, costs = made_at(line.file, line.line), of_wall(cost, recording)
    if waste.how == "filter":
        return (
            f"{waste.empty} of {count(waste.runs, 'partition')} read by {reader}{where} hold no "
            f"row that passes the filter: {costs}"
        )
    what = "of the columns" if waste.how == "columns" else "of each chunk"
    return f"{share(1 - waste.used)} {what} read by {reader}{where} is never used: {costs}"


def _fix(waste: _Waste) -> Fix:
    reader, used = word(waste.reader, "read"), share(waste.used)
    if waste.how == "filter":
        text = _FILTER_TEXT.format(empty=waste.empty, runs=waste.runs)
        return Fix(text, _FILTER.format(reader=reader))
    if waste.how == "slice":
        return Fix(_SLICE_TEXT.format(used=used), _SLICE)
    columns = _names(waste.label)
    text = _COLUMNS_TEXT.format(used=count(len(columns), "column") if columns else "some columns")
    shown = repr(columns) if columns else "needed"
    return Fix(text, _COLUMNS.format(reader=reader, columns=shown))


def _names(label: str) -> list[str]:
    """The columns in the label of a row; none if they were too many to be kept, or renamed."""
    try:
        found = msgspec.json.decode(label, type=list[str])
    except msgspec.MsgspecError:
        return []
    return found


RULE = Rule(
    id="unused-data",
    stage=Stage.EXECUTION,
    summary="Columns, partitions or parts of chunks are read and dropped right after.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "unused": Limit(0.3, "of what is read: below, reading less gains little"),
        "share": Limit(0.03, "of the wall time on the critical path: less is not worth a change"),
    },
)
