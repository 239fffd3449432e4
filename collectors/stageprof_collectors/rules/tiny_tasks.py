"""Many tasks that do less work than it takes to hand them out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.advice import in_batches
from stageprof_collectors.findings.batch import batch, rounded
from stageprof_collectors.findings.calling import calling
from stageprof_collectors.findings.crowd import MANY, Crowd, Kind
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.storage.layered import TUPLE
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Give each task about {k:,} pieces of work instead of one. A task costs about {each} whatever "
    "it does: the scheduler decides where it goes, and messages bring it there and its result back."
)


_BAG: Final = """\
# better: make it so, db.from_sequence(..., npartitions={parts})
bag = bag.repartition(npartitions={parts})"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all calls: they share what hands them out."""
    if len(recording.timeline.runs["run"]) < limits["tasks"]:
        return
    crowd = recording.crowds.of(Kind.CALLS)
    if crowd is None or len(crowd.rows) < limits["tasks"]:
        return
    overhead = Overhead(recording, crowd)
    k = rounded(batch(overhead, overhead.at_once))
    if k > 1 and overhead.work_s < limits["overheads"] * overhead.each_s:
        yield _finding(recording, crowd, overhead, k)


def _finding(recording: Recording, crowd: Crowd, overhead: Overhead, k: int) -> Finding:
    saved = overhead.saving(k)
    main, tasks, cost = crowd.main, len(crowd.rows), overhead.seconds
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{tasks:,} tasks, most of `{main.prefix}`{made_at(main.file, main.line)}, take "
            f"{seconds(overhead.work_s)} of work each and {seconds(overhead.each_s)} to hand out: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "tasks": tasks,
            "work_each_s": overhead.work_s,
            "overhead_each_s": overhead.each_s,
            "threads": overhead.threads,
            "batch_size": k,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _TEXT.format(k=k, each=seconds(overhead.each_s)), _code(recording, crowd, overhead, k)
        ),
        where=Where(main.file, main.line, "", main.layer, main.prefix),
        cause=crowd.cause,
    )


def _code(recording: Recording, crowd: Crowd, overhead: Overhead, k: int) -> str:
    key = recording.store.keys(recording.timeline.runs["key"][crowd.rows[:1]])[0]
    if key.startswith(TUPLE):
        return _BAG.format(parts=max(1, overhead.at_once // k))
    return in_batches(word(crowd.main.prefix, "work"), k, calling(recording, crowd.rows))


RULE = Rule(
    id="tiny-tasks",
    stage=Stage.EXECUTION,
    summary="Tasks of `delayed`, futures or bags are short beside what each costs to hand out.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "tasks": Limit(MANY, "a task costs about a millisecond: fewer never cost a second"),
        "overheads": Limit(10, "at ten times its overhead, a task loses a tenth of its time to it"),
    },
)
