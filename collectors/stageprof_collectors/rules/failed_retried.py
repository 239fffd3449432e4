"""Tasks that raised, or went with their worker, and had to be run again."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.groups import Row
from stageprof_collectors.failures import run_again, told
from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.gone import without, worked_s
from stageprof_collectors.text import line_of
from stageprof_runtime.event import STATUS
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

_ERRED, _LOST = STATUS.index("erred"), STATUS.index("lost")

_TEXT: Final = (
    "Find out why {error}is raised{where}: a retry throws away what the task had done until then. "
    "If it is a service or a disk that refuses now and then, try again inside the task, around "
    "the one call that fails (the code below), and check what can be checked before the work is "
    "done. Cut tasks that work long before they can fail into two."
)
#: Exceptions of Python's that libraries have others of the same name of.
_LIBRARIES: Final = frozenset({"ConnectionError", "TimeoutError"})
_LOST_TEXT: Final = (
    "Workers went while they had these tasks: look at their logs and at the operating system's or "
    "the batch system's limits. Results that took long can be written to storage as they come."
)
_CODE: Final = """\
import time

def patient(call, *args, tries=5, wait=0.1):
    for attempt in range(tries - 1):
        try:
            return call(*args)
        except {error}:{better}
            time.sleep(wait * 2**attempt)
    return call(*args)

# inside `{name}`: patient(call_that_fails, argument) in place of call_that_fails(argument)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for what raised, and one for what was lost with workers."""
    status = recording.timeline.runs["status"]
    for kind in (_ERRED, _LOST):
        if (status == kind).any():
            rows = _again(recording, kind)
            if len(rows) and worked_s(recording, rows) >= limits["share"] * recording.wall:
                yield _finding(recording, rows, lost=kind == _LOST)


def _again(recording: Recording, status: int) -> Ints:
    """Runs that ended so, whose key was run once more."""
    rows = np.flatnonzero(recording.timeline.runs["status"] == status)
    return rows[run_again(recording.timeline, rows)]


def _finding(recording: Recording, rows: Ints, *, lost: bool) -> Finding:
    saved = recording.replay.saving(without(recording, rows))
    # Healthy tasks waited behind failed runs: what that cost is not in the failed runs themselves.
    cost = max(cost_of(recording, runs=rows.tolist()), saved[1])
    row = recording.groups.most(rows)
    error, where = ("", "") if lost else _raised(recording, row.prefix)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=_headline(rows, row, error, where, lost=lost) + f": {of_wall(cost, recording)}",
        stage=Stage.EXECUTION,
        evidence={
            "runs_failed": len(rows),
            "tasks": len(set(recording.store.keys(recording.timeline.runs["key"][rows]))),
            "work_thrown_away_s": worked_s(recording, rows),
            "exception": error,
            "raised_at": where,
            "why": "lost with a worker" if lost else "raised",
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_LOST_TEXT) if lost else _fix(row, error, where),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=_cause(recording, row, lost=lost),
    )


def _headline(rows: Ints, row: Row, error: str, where: str, *, lost: bool) -> str:
    what = f"{count(len(rows), 'run')} of `{row.prefix}`{made_at(row.file, row.line)}"
    if lost:
        return f"{what} went with their workers and were done again"
    at = made_at(*line_of(where))
    return f"{what} raised {error or 'an exception'}{at}, and were retried"


def _cause(recording: Recording, row: Row, *, lost: bool) -> str:
    """What was lost with workers has the cause that the rule worker-restarted names."""
    if lost:
        return shortage.gone(recording)
    return f"raised:{row.layer}"


def _raised(recording: Recording, prefix: str) -> tuple[str, str]:
    """The exception that tasks of a prefix raised most, and the user's line ("file:line")."""
    marks = told(recording.timeline)
    seen = Counter((name, where) for _, _, name, of, where in marks if of == prefix)
    return seen.most_common(1)[0][0] if seen else ("", "")


def _fix(row: Row, error: str, where: str) -> Fix:
    at = made_at(*line_of(where))
    text = _TEXT.format(error=f"{error} " if error else "an exception ", where=at)
    kind, better = _caught(error)
    return Fix(text, _CODE.format(error=kind, better=better, name=word(row.prefix, "your_task")))


def _caught(error: str) -> tuple[str, str]:
    """What to catch: of which module an exception is was not told, only its name."""
    name = word(error, "Exception") if error else "Exception"
    known = getattr(builtins, name, None)
    if name not in _LIBRARIES and isinstance(known, type) and issubclass(known, BaseException):
        return name, ""
    return "Exception", f"  # better: {name}, imported from where it is"


RULE = Rule(
    id="failed-retried",
    stage=Stage.EXECUTION,
    summary="Tasks failed or were lost after they had worked, and were run again.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.02, "of the wall time in work thrown away: less is not worth a change"),
    },
)
