"""Task time that goes into Python loops over the rows of a frame or the elements of a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.inside import called
from stageprof_collectors.profiles.looks import Look, Looks
from stageprof_runtime.stack import ROW_LOOPS
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Of a loop's time the whole-column form leaves between a quarter (a loop with branches, turned
#: into masks and temporary columns) and next to nothing (arithmetic on columns: a hundredth).
GAIN: Final = (0.75, 0.99)
#: Of a loop whose calls take long anything: of one over vectors, or of libraries' functions that
#: take one text or one record at a time.
OF_CALLS: Final = (0.0, 0.99)
#: Of a function's time: where libraries have more of it than this, it is their calls.
THEIRS: Final = 0.5
_VECTORS: Final = frozenset({"np.vectorize(signature)", "np.apply_along_axis"})

_TEXT: Final = (
    "Python handles one row after the other here, and makes objects for each. The same work on "
    "whole columns runs in compiled code, often a hundred times faster: {hint}. A loop that needs "
    "the row before it can be compiled as it stands with Numba."
)
_CALLS: Final = (
    "Most of this time is in libraries' functions that are called for one value after the other, "
    "not in the loop. Look for a call that takes a whole column (`Series.str`, `pandas.to_datetime`"
    ", `pyarrow.compute`, a parser of many records), or for a quicker library; and call it once "
    "for each different value, where values come again. Otherwise use more worker processes with "
    "one thread each, as far as there are processors."
)
_LOOPS: Final = (
    "write the loop's body for columns, with `mask` for its `if`, `sum()` for `+=` and the column "
    "itself for a list that is appended to"
)
_HINTS: Final = {
    "apply(axis=1)": (
        "arithmetic and comparisons in the function work on a frame's columns as they are, and "
        "`numpy.where(condition, a, b)` stands for `if`"
    ),
    "Series.apply": (
        "arithmetic in the function works on the column as it is, and `numpy.where` stands for `if`"
    ),
    "np.vectorize": (
        "`numpy.vectorize` is a Python loop; arithmetic works on arrays as they are, and "
        "`numpy.where` stands for `if`"
    ),
    "rolling.apply": (
        "`rolling` has `quantile`, `median`, `std`, `rank` and others of its own, and compiles any "
        "other function once"
    ),
    "np.vectorize(signature)": (
        "numpy calls the function for one vector after the other; its own functions take an axis "
        "(`mean(axis=-1)`) and do all vectors at once. Where each call takes long, it is not the "
        "loop that is slow"
    ),
}
_HINTS["np.apply_along_axis"] = _HINTS["np.vectorize(signature)"]
_HINTS["Series.map"] = _HINTS["Series.apply"]
#: What a function is called for, where it is no element.
_EACH: Final = {"apply(axis=1)": "row", "rolling.apply": "window"} | dict.fromkeys(
    _VECTORS, "vector"
)

_APPLY: Final = """\
from numpy.testing import assert_array_equal

def {name}_of_all(frame):
    return {name}(frame)  # instead of frame.apply({name}, axis=1)

# it must give the same on some rows:
some = frame.head(100)
assert_array_equal({name}_of_all(some), some.apply({name}, axis=1))"""
_MAP: Final = """\
from numpy.testing import assert_array_equal

def {name}_of_all(column):
    return {name}(column)  # instead of column.map({name}) or column.apply({name})

# it must give the same on some values:
some = column.head(100)
assert_array_equal({name}_of_all(some), some.map({name}))"""
_VECTORIZE: Final = """\
from numpy.testing import assert_array_equal

def {name}_of_all(values):
    return {name}(values)  # instead of numpy.vectorize({name})(values)

# it must give the same on some values:
some = values[:100]
assert_array_equal({name}_of_all(some), [{name}(value) for value in some])"""
_ROLLING: Final = """\
# what pandas has itself: windows.quantile(0.9), windows.median(), windows.std(), ...
result = windows.apply({name}, raw=True, engine="numba")  # any other: compiled, needs numba"""
_ALONG: Final = """\
import numpy as np

def {name}_of_all(values):
    return {name}(values)  # along the last axis: values.sum(axis=-1) for sum(), ...

# it must give the same on some vectors:
some = values.reshape(-1, values.shape[-1])[:100]
assert np.allclose({name}_of_all(some), [{name}(vector) for vector in some])"""
_ROWS: Final = """\
columns = {{name: frame[name].to_numpy() for name in frame.columns}}  # instead of {how}
# for _, row in frame.iterrows():        mask = columns["a"] > limit
#     if row["a"] > limit:          ->   total = columns["b"][mask].sum()
#         total += row["b"]"""

_CODES: Final = {
    "apply(axis=1)": _APPLY,
    "rolling.apply": _ROLLING,
    "np.vectorize": _VECTORIZE,
} | dict.fromkeys(_VECTORS, _ALONG)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each loop."""
    if not recording.store.rows("stack"):
        return
    looks = Looks(recording)
    loops: dict[tuple[str, int], list[Look]] = {}
    for look in looks.all:
        if look.how in ROW_LOOPS and look.file:
            loops.setdefault((look.file, look.line), []).append(look)
    for mine in loops.values():
        if sum(look.count for look in mine) >= limits["looks"]:
            yield from _found(recording, looks, mine, limits)


def _found(
    recording: Recording, looks: Looks, mine: list[Look], limits: Limits
) -> Iterator[Finding]:
    shares = looks.interpreted(mine)
    cost = looks.cost(shares)
    if cost < limits["share"] * recording.wall:
        return
    main = max(mine, key=lambda look: look.seconds)
    # A function that is called for each is all loop; another one from the line of its loop on.
    after = 0 if main.how in _HINTS else main.line
    theirs = called(recording, main.file, main.function, after) > THEIRS
    saved = looks.saving(shares, OF_CALLS if theirs or main.how in _VECTORS else GAIN)
    busy, most = looks.busy(shares), shares[main.prefix].middle
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{_loop(main)}{made_at(main.file, main.line)} takes {share(most)} of the time of "
            f"`{main.prefix}`: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "loop": main.how,
            "share_of_tasks": most,
            "task_s": busy,
            "looks": sum(look.count for look in mine),
            **looks.holding(shares),
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_CALLS) if theirs else _fix(main),
        where=Where(main.file, main.line, "", "", main.prefix),
        cause=f"line:{main.file}:{main.line}",
    )


def _loop(look: Look) -> str:
    if look.how == "element access":
        return f"A loop in `{look.function}` that takes single elements of a frame or column,"
    if look.how in _HINTS:
        each = _EACH.get(look.how, "element")
        return f"`{look.function}`, called for each {each} by {look.how},"
    return f"The loop over {look.how}() in `{look.function}`"


def _fix(look: Look) -> Fix:
    return Fix(_TEXT.format(hint=_HINTS.get(look.how, _LOOPS)), _code(look))


def _code(look: Look) -> str:
    name = word(look.function, "function")
    if look.how in _HINTS:
        return _CODES.get(look.how, _MAP).format(name=name)
    how = "taking them one by one" if look.how == "element access" else f"frame.{look.how}()"
    return _ROWS.format(how=how)


RULE = Rule(
    id="row-loop",
    stage=Stage.EXECUTION,
    summary="Tasks loop over rows or elements in Python.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "looks": Limit(5, "fewer of the looks at tasks may be chance"),
        "share": Limit(0.02, "of the wall time on the critical path: less is not worth rewriting"),
    },
)
