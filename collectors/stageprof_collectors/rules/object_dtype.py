"""Columns of Python objects whose values a dtype could hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, share, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.looks import Look, Looks
from stageprof_runtime.columns import MISSING
from stageprof_runtime.stack import OBJECTS
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Of the time that pandas works on objects, a dtype takes away between two fifths (texts that are
#: cut and joined) and nearly all (hashing, comparing and adding up).
GAIN: Final = (0.4, 0.95)
#: Columns printed.
PRINTED: Final = 12

_TEXT: Final = (
    "These columns have the dtype `object`: each value is a Python object of its own, and pandas "
    "handles them one by one while it holds the GIL. The values that were looked at "
    "({columns}) would fit a dtype, which takes less memory and runs in compiled code. Convert "
    "them once, where the frame is read or made, and look at the result: a value that does not "
    "fit the dtype raises an error."
)
_MISSING: Final = (
    " Missing values become `<NA>`, which is neither equal to anything nor different from it: "
    "where a filter uses `!=` or `~`, say with `.fillna` or `.isna()` whether those rows are kept."
)
_DATES: Final = " Of dates Dask has no `min` and no `max` then."
_DECIMALS: Final = (
    " Decimals get 18 digits, so that there is room for products of two; Dask's own `sum`, `mean`, "
    "`min` and `max` of such a column raise an error, those of pandas within a task do not."
)
#: What values are -> how to print a dtype that holds them, with missing ones too. None is there for
#: bytes: pandas has no `.str` for what Arrow holds.
_DTYPES: Final = {
    "string": '"string[pyarrow]"',
    "integer": '"Int64"',
    "boolean": '"boolean"',
    "float": '"float64"',
    # compared with dates it is right; time stamps are equal to none of them
    "date": "pd.ArrowDtype(pa.date32())",
    "datetime": '"datetime64[us]"',
}
_DECIMAL: Final = "pd.ArrowDtype(pa.decimal128({digits}, {places}))"
#: Digits of a product are those of both: Arrow has room for 38.
_DIGITS, _MOST_DIGITS = 18, 38
#: Those whose missing values are `NaN` or `NaT`, as before.
_NUMPYS: Final = ("float", "datetime")


@dataclass
class Column:
    """An object column, as it was seen in the results of tasks."""

    name: str
    kind: str
    prefixes: set[str]
    nbytes: int
    frame_bytes: int


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all columns: they are converted in one call."""
    if not recording.store.rows("column"):
        return
    columns, others = _columns(recording)
    if not columns:
        return
    looks = Looks(recording)
    on_objects = [look for look in looks.all if look.how == OBJECTS]
    shares = looks.shares(on_objects)
    cost = looks.cost(shares) if shares else 0.0
    if (
        cost >= limits["share"] * recording.wall
        and sum(x.count for x in on_objects) >= limits["looks"]
    ):
        yield _finding(recording, columns, looks, on_objects, cost, alone=not others)


def _columns(recording: Recording) -> tuple[list[Column], set[str]]:
    """Object columns with values that a dtype holds, and the names of others.

    One that is mixed anywhere is of the others.
    """
    table, strings = recording.store.table("column"), recording.store.strings
    frames: dict[tuple[int, int, int], int] = {}
    names = ("place", "t", "name", "label", "type", "how", "nbytes")
    rows = list(zip(*(table[n].tolist() for n in names), strict=True))
    for place, t, prefix, _, _, _, nbytes in rows:
        frames[place, t, prefix] = frames.get((place, t, prefix), 0) + nbytes
    found: dict[str, Column] = {}
    mixed: set[str] = set()
    for place, t, prefix, label, dtype, how, nbytes in rows:
        name, kind = strings[label], strings[how]
        if strings[dtype] != "object" or kind == MISSING:
            continue
        known = found.setdefault(name, Column(name, kind, set(), 0, 0))
        if dtype_of(kind) == "" or kind.split()[:1] != known.kind.split()[:1]:
            mixed.add(name)
        known.kind = max(known.kind, kind, key=len)
        known.prefixes.add(strings[prefix])
        if nbytes > known.nbytes:
            known.nbytes, known.frame_bytes = nbytes, frames[place, t, prefix]
    return [column for name, column in found.items() if name not in mixed], mixed


def dtype_of(kind: str) -> str:
    """The code of a dtype for what values are; "" if there is none."""
    what, _, _ = kind.partition(" or missing")
    if what.startswith("decimal "):
        places = int(what.removeprefix("decimal "))
        digits = min(_MOST_DIGITS, max(_DIGITS, places + _DIGITS // 2))
        return _DECIMAL.format(digits=digits, places=places)
    return _DTYPES.get(what, "")


def _finding(
    recording: Recording,
    columns: list[Column],
    looks: Looks,
    seen: list[Look],
    cost: float,
    *,
    alone: bool,
) -> Finding:
    shares = looks.shares(seen)
    saved = looks.saving(shares, GAIN)
    if not alone:  # columns that no dtype holds may be what takes the time
        saved = 0.0, saved[1]
    main = max(seen, key=lambda look: look.seconds)
    largest = sorted(columns, key=lambda c: -c.nbytes)[:PRINTED]
    file, line = _line(recording, main, largest)
    told = ", ".join(f"`{c.name}`: {c.kind}" for c in largest)
    part = max(c.nbytes / max(1, c.frame_bytes) for c in columns)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(len(columns), 'column')} of dtype object ({told}): work on them takes "
            f"{share(shares[main.prefix].middle)} of the time of `{main.prefix}`"
            f"{made_at(file, line)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "columns": len(columns),
            "task_s": looks.busy(shares),
            "largest_column_bytes": largest[0].nbytes,
            "largest_column_share": part,
            "largest_column_memory": size(largest[0].nbytes),
        },
        cost_s=cost,
        saving_s=saved,
        fix=fix({c.name: c.kind for c in largest}, several=len({*map(_frame, largest)}) > 1),
        where=Where(file, line, "", "", main.prefix),
        cause="object-columns",
    )


def _line(recording: Recording, main: Look, columns: list[Column]) -> tuple[str, int]:
    """The user's line in which the work was seen.

    Of what Dask's own functions do, the one at which it was asked for, or else the columns made.
    """
    if main.file:
        return main.file, main.line
    for prefixes in ({main.prefix}, {prefix for column in columns for prefix in column.prefixes}):
        rows = (row for row in recording.groups.rows if row.prefix in prefixes and row.line)
        lines = {(row.file, row.line) for row in rows}
        if len(lines) == 1:
            return lines.pop()
    return "", 0


def _frame(column: Column) -> frozenset[str]:
    """Which tasks' frames have it: what they have in common is what tells frames apart."""
    return frozenset(column.prefixes)


def fix(kinds: dict[str, str], *, several: bool = False) -> Fix:
    """What to do with columns, by their names and what their values are.

    Args:
        kinds: what its values are by the name of each.
        several: whether not each frame has all of them.
    """
    told = ", ".join(f"`{name}`: {kind}" for name, kind in kinds.items())
    text = _TEXT.format(columns=told)
    here = [kind.split()[0] for kind in kinds.values()]
    gaps = [kind.split()[0] for kind in kinds.values() if kind.endswith(" or missing")]
    text += _MISSING if set(gaps) - {*_NUMPYS} else ""
    text += (_DATES if "date" in here else "") + (_DECIMALS if "decimal" in here else "")
    return Fix(text, _code(kinds, several=several))


def _code(kinds: dict[str, str], *, several: bool) -> str:
    dtypes = [(name, dtype_of(kind)) for name, kind in kinds.items()]
    lines = [f"    {name!r}: {dtype}," for name, dtype in dtypes]
    imports = []
    if any("pd." in dtype for _, dtype in dtypes):
        imports = ["import pandas as pd", "import pyarrow as pa", ""]
    if not several:
        return "\n".join([*imports, "frame = frame.astype({", *lines, "})"])
    mine = "{name: dtypes[name] for name in dtypes if frame.dtypes.get(name) == object}"
    convert = f"frame = frame.astype({mine})  # of each frame its own"
    return "\n".join([*imports, "dtypes = {", *lines, "}", convert])


RULE = Rule(
    id="object-dtype",
    stage=Stage.EXECUTION,
    summary="Tasks work on object columns whose values a dtype could hold.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "looks": Limit(5, "fewer of the looks at tasks may be chance"),
        "share": Limit(0.02, "of the wall time on the critical path: less is not worth converting"),
    },
)
