"""Operations on a data frame that are a task each of each partition, though Dask can fuse them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.crowd import MANY, Crowd, Kind
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.unfused import Unfused, unfused
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Have Dask fuse them, as the last step before the computation: `optimize()` makes one task of "
    "each partition's {longest}, {left:,} in place of {tasks:,}; `compute` alone does not in this "
    "version of Dask. Each task costs about {each} beside its work. Do nothing more with what "
    "`optimize()` returns than compute it: what is chosen of it later is read all the same."
)
_CODE: Final = """\
result = frame.optimize().compute()  # frame: what you compute now; or .to_parquet(...)
# of several at once: dask.compute(*(frame.optimize() for frame in frames))"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all data frames."""
    if not len(recording.store.table("unfused")["t"]):
        return
    found = unfused(recording)
    if len(found.rows) - found.left < limits["tasks"]:
        return
    crowd = _crowd(recording, found)
    overhead = Overhead(recording, crowd)
    if overhead.seconds >= limits["share"] * recording.wall:
        yield _finding(recording, found, crowd.main, overhead)


def _crowd(recording: Recording, found: Unfused) -> Crowd:
    groups = recording.groups
    tasks = Counter(groups.of_run[found.rows].tolist())
    # What the optimizer made itself, or was made before the recording, is of no line.
    main = groups.rows[max(tasks, key=lambda row: (groups.rows[row].line > 0, tasks[row]))]
    return Crowd(Kind.CHUNKS, found.rows, main, recording.crowds.lines(found.rows))


def _finding(recording: Recording, found: Unfused, main: Row, overhead: Overhead) -> Finding:
    tasks = len(found.rows)
    saved = overhead.saving(tasks / found.left)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{tasks:,} tasks on data frames that Dask did not fuse, up to {found.longest} for "
            f"each partition, some of `{main.prefix}`{made_at(main.file, main.line)}: what each "
            f"costs beside its work is {of_wall(overhead.seconds, recording)}"
        ),
        stage=Stage.OPTIMIZATION,
        evidence={
            "tasks": tasks,
            "fused_tasks": found.left,
            "work_each_s": overhead.work_s,
            "overhead_each_s": overhead.each_s,
        },
        cost_s=overhead.seconds,
        saving_s=saved,
        fix=fix(found.longest, tasks, found.left, overhead.each_s),
        where=Where(main.file, main.line, "", main.layer, main.prefix),
        cause="fusing",
    )


def fix(longest: int, tasks: int, left: int, each_s: float) -> Fix:
    """What to do about so many tasks, of which fused ones would leave others."""
    text = _TEXT.format(
        longest=count(longest, "task"), tasks=tasks, left=left, each=seconds(each_s)
    )
    return Fix(text, _CODE)


RULE = Rule(
    id="unfused-frame",
    stage=Stage.OPTIMIZATION,
    summary="Operations on data frames are left as tasks of their own, which Dask can fuse.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "tasks": Limit(MANY, "fewer of them: a task costs about a millisecond"),
        "share": Limit(0.05, "of the wall time: with less, nobody would notice"),
    },
)
