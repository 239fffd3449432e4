"""The check of data frames: columns of dtype object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.preflight.check import NOT_KNOWN, Check
from stageprof_collectors.preflight.plan import Frame, Plan
from stageprof_collectors.rules import object_dtype
from stageprof_collectors.rules.object_dtype import PRINTED, dtype_of
from stageprof_runtime.stage import Stage

_UNSEEN: Final = (
    "Each value of a column of dtype object is a Python object of its own, which pandas handles "
    "one by one while it holds the GIL. What the values are is not known before they are read: "
    "look at some, and convert where the frame is read or made only if all are of one type. "
    "Columns of lists or of mixed values stay as they are."
)
_LOOK: Final = """\
from pandas.api.types import infer_dtype

first = ddf.partitions[0].compute()
print({{name: infer_dtype(first[name], skipna=True) for name in {names!r}}})"""


def find(plan: Plan, _limits: Limits) -> Iterator[Finding]:
    """One finding for each frame."""
    for frame in plan.frames:
        seen = {name: kind for name, kind in frame.columns.items() if kind and dtype_of(kind)}
        if seen:
            yield _seen(frame, seen)
        elif None in frame.columns.values():
            yield _unseen(frame)


def _seen(frame: Frame, kinds: dict[str, str]) -> Finding:
    """Values were there to be looked at: moderate, as nobody knows what is done with them."""
    told = ", ".join(f"`{name}`: {kind}" for name, kind in list(kinds.items())[:PRINTED])
    fix = object_dtype.fix(dict(list(kinds.items())[:PRINTED]))
    return _finding(frame, Severity.MODERATE, told, len(kinds), fix)


def _unseen(frame: Frame) -> Finding:
    names = [name for name, kind in frame.columns.items() if kind is None][:PRINTED]
    told = ", ".join(f"`{name}`" for name in names)
    fix = Fix(_UNSEEN, _LOOK.format(names=names))
    return _finding(frame, Severity.NOTE, told, len(frame.columns), fix)


def _finding(frame: Frame, severity: Severity, told: str, number: int, fix: Fix) -> Finding:
    return Finding(
        rule=object_dtype.RULE.id,
        severity=severity,
        headline=(
            f"{count(number, 'column')} of dtype object ({told}) in a data frame"
            f"{made_at(frame.file, frame.line, ' made at ')}"
        ),
        stage=Stage.EXECUTION,
        evidence={"columns": number},
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=fix,
        where=Where(frame.file, frame.line, "", frame.name),
        cause="object-columns",
    )


CHECKS = (Check("object-dtype", find, object_dtype.RULE.limits),)
