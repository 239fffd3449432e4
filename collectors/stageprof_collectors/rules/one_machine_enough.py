"""So little work that one thread is done with it before a cluster has handed it out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.path import Step
from stageprof_collectors.findings.batch import batch
from stageprof_collectors.findings.calling import calling
from stageprof_collectors.findings.crowd import MANY, Bools, Kind
from stageprof_collectors.findings.finding import Finding, Fix, severity
from stageprof_collectors.findings.innocence import at_most
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.own_imports import imported, imported_s
from stageprof_collectors.findings.phrase import of_wall, word
from stageprof_collectors.findings.quantity import count, seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.gone import worked_s
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import OUTSIDE, SIX, STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = STEP["compute"]
#: What Dask calls tasks that move pieces of frames and arrays. Not those of a bag's `groupby`, nor
#: of a hash join: they group and join as well, which would have to be done on one machine, too.
_MOVES: Final = re.compile(
    r"(-?((shuffle|rechunk|hash-join)-(transfer|barrier|p2p)|p2pshuffle|((group|split)-)?taskshuffle))+"
)

_TEXT: Final = (
    "Do it without a cluster: all tasks together are {work} of work, and no more than {bytes} are "
    "in memory at once. Use pandas or NumPy directly, or {instead} (the code below). Keep "
    "the cluster if the real data are many times larger than these."
)
_CODE: Final = """\
import dask

dask.config.set(scheduler="sync")  # in place of Client(...): all in this process, one thread"""
#: Futures know no other scheduler.
_CALLS: Final = """\
results = [{name}(x) for x in inputs]  # in place of Client(...), its submit or map, and gather"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One, if one thread without a cluster would be quicker whatever else is changed."""
    crew = Crew(recording)
    if not len(crew.rows) or not recording.timeline.runs["seen"][crew.rows].all():
        return  # without its worker's own word, the work of a run is not known
    needed = ~_moving(recording)
    work, inside = worked_s(recording, crew.rows[needed[crew.rows]]), _inside(recording)
    if work + crew.going_on_s > limits["part"] * inside or inside < limits["seconds"]:
        return
    held = _held(recording)
    if held > limits["bytes"]:
        return
    saved = recording.replay.saving(_alone(recording, needed))
    if saved[1] > limits["better"] * _otherwise(recording):
        yield _finding(recording, crew, work, inside, held, saved)


def _inside(recording: Recording) -> float:
    """Seconds of the wall time in Dask, or waiting for it."""
    own = sum(s.stop - s.start for s in recording.path_steps if _anyway(recording, s))
    return recording.wall - own / 1e9


def _anyway(recording: Recording, step: Step) -> bool:
    """Whether it is there without a cluster, too: the user's own code, what the client imports."""
    return step.what.step == OUTSIDE or imported(recording, step)


def _moving(recording: Recording) -> Bools:
    """Which runs only move data between workers: on one machine there is nothing to move."""
    return recording.layered.prefixed(_MOVES.fullmatch)


def _alone(recording: Recording, needed: Bools) -> Change:
    """The same functions one after another on one thread, and nothing around them."""

    def stays(step: Step) -> float:
        return float(step.what.step == _COMPUTE or _anyway(recording, step))

    return Change(
        compute=needed.astype(float),
        lead=0.0, fetch=0.0, lag=0.0, begin=0.0, serial=stays, threads=1, workers=1
    )  # fmt: skip


def _otherwise(recording: Recording) -> float:
    """Seconds that fewer, larger tasks, or mending any one stage, would save at most.

    With fewer tasks objects that travel with them travel less often, or wrapped in `delayed` once.
    """
    crowds = recording.crowds
    best = 0.0
    for kind in Kind:
        crowd = crowds.of(kind)
        if crowd is not None and len(crowd.rows) >= MANY:
            overhead = Overhead(recording, crowd, carried=True)
            change = overhead.merged(batch(overhead, overhead.at_once))
            best = max(best, recording.replay.saving(change)[1])
    return max(best, *(_mended(recording, stage) for stage in SIX if stage != Stage.EXECUTION))


def _mended(recording: Recording, stage: Stage) -> float:
    """Seconds that a stage would take less at most."""
    return at_most(recording, stage) - imported_s(recording, stage)


def _held(recording: Recording) -> float:
    """Bytes that all workers held at once, at most."""
    table = recording.samples()
    held = table[(table["name"] == "memory.managed") & (table["role"] == "worker")]
    most = float(held.groupby("place")["value"].max().sum())
    return max(most, float(np.max(recording.timeline.runs["nbytes"], initial=0)))


def _finding(
    recording: Recording,
    crew: Crew,
    work: float,
    inside: float,
    held: float,
    saved: tuple[float, float],
) -> Finding:
    cost = inside - cost_of(recording, steps={_COMPUTE})
    tasks = count(len(crew.rows), "task")
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"One thread would be quicker: all {tasks} together are {seconds(work)} of work, and "
            f"what a cluster of {count(crew.threads, 'thread')} takes beside it is "
            f"{of_wall(cost, recording)}"
        ),
        stage=None,
        evidence={
            "tasks": len(crew.rows),
            "work_s": work,
            "inside_dask_s": inside,
            "threads": crew.threads,
            "held_bytes": held,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, crew, seconds(work), size(held)),
        cause="one machine",
    )


def _fix(recording: Recording, crew: Crew, work: str, held: str) -> Fix:
    instead, code = "Dask on one thread", _CODE
    if calling(recording, crew.rows).futures:
        name = word(recording.groups.most(crew.rows).prefix, "work")
        instead, code = "call your functions", _CALLS.format(name=name)
    return Fix(_TEXT.format(work=work, bytes=held, instead=instead), code)


RULE = Rule(
    id="one-machine-enough",
    stage=None,
    summary="One thread without a cluster would be done sooner.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "part": Limit(0.33, "of the time in Dask that the tasks' work is: with more, it may help"),
        "seconds": Limit(1.0, "in Dask: for less nobody changes a program"),
        "better": Limit(1.2, "times what any one other change saves: else that is the advice"),
        "bytes": Limit(2e9, "held at once: less fits into any computer's memory three times"),
    },
)
