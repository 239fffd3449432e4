"""A local scheduler that does not fit the work: threads that share a GIL, processes that copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds, span
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.apart import apart
from stageprof_runtime.event import POOLED
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: Seconds that processes take to start at least, for each computation anew: Python, Dask and NumPy
#: or pandas are imported, in all processes at the same time.
START_S: Final = 0.2
#: Dask gives a process so many tasks at a time, unless it is told otherwise: with few tasks the
#: other processes get none. There should be a few such batches for each.
BATCH: Final = 6
BATCHES: Final = 4
#: What is done for a task's data on their way, by the scheduler's own thread and by the processes.
_LOOP: Final = tuple(STEP[step] for step in ("task.dump", "result.load"))
_THERE: Final = tuple(STEP[step] for step in ("task.load", "result.dump"))

_PROCESSES: Final = (
    "Use the processes scheduler: Python runs one thread of a process at a time, and these tasks "
    "hold it. With {n} processes the same takes {time}: less if tasks pass little data to one "
    "another, for data are copied between processes, which also start anew for each compute. "
    'Start the program under `if __name__ == "__main__":`.'
)
_ONE_BY_ONE: Final = (
    " A process is given six tasks at a time, which with {tasks} leaves others without: have them "
    "handed out one by one."
)
_THREADS: Final = (
    "Use the threads scheduler: nothing is copied between threads. With it the same takes about "
    "{time}, if the tasks leave the GIL alone (NumPy, pandas on numbers, PyArrow); tasks in pure "
    "Python would wait for one another."
)
_CODE: Final = """\
import dask

dask.config.set(scheduler="{name}"{more})  # or for one call: x.compute(scheduler="{name}"{more})"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for the scheduler that ran most of the tasks."""
    runs = recording.timeline.runs
    rows = np.flatnonzero((runs["run"] >= LOCAL) & (runs["seen"] == 1))
    if len(rows) < limits["tasks"]:
        return
    if _in_processes(recording):
        yield from _copying(recording, limits)
    elif len(np.unique(runs["thread"][rows])) > 1:
        yield from _contending(recording, rows, limits)


def _in_processes(recording: Recording) -> bool:
    store = recording.store
    where = {store.strings[i] for i in np.unique(store.table("run")["worker"]).tolist()}
    return any(name.startswith(POOLED) for name in where)


# -- threads that wait for one another ----------------------------------------------------------


def _contending(recording: Recording, rows: Ints, limits: Limits) -> Iterator[Finding]:
    shares = recording.timeline.gil.shares
    if shares is None:
        return
    runs = recording.timeline.runs
    length = np.maximum(runs["stop"] - runs["start"], 1).astype(float)
    waited = float((shares * length)[rows].sum() / length[rows].sum())
    if waited < limits["waited"]:
        return
    # A thread that waits for the GIL uses no processor: what it used is what a process would need.
    # And n threads that share a GIL take at most n times as long as n processes.
    least = 1 / len(np.unique(runs["thread"][rows]))
    own = np.where(runs["run"] >= LOCAL, np.clip(runs["cpu"] / length, least, 1.0), 1.0)
    gone = np.minimum(shares, 1 - own)
    computes = sum(graph.number >= LOCAL for graph in recording.timeline.graphs)
    high = recording.replay.saving(apart(recording, gone))[1] - START_S * max(computes, 1)
    cost = _on_path(recording, shares)
    if high > 0 and cost >= limits["share"] * recording.wall:
        # At least nothing: how much would be copied between processes nobody has seen.
        yield _processes(recording, rows, waited, cost, (0.0, high))


def _on_path(recording: Recording, waited: Floats) -> float:
    compute = STEP["compute"]
    steps = [s for s in recording.path_steps if s.run >= 0 and s.what.step == compute]
    return sum((s.stop - s.start) * float(waited[s.run]) for s in steps) / 1e9


def _processes(
    recording: Recording, rows: Ints, waited: float, cost: float, saved: tuple[float, float]
) -> Finding:
    n = len(np.unique(recording.timeline.runs["thread"][rows]))
    where = _main(recording, rows)
    few = len(rows) < BATCHES * BATCH * n
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"`{where.prefix}`{made_at(where.file, where.line)} runs on {count(n, 'thread')} of "
            f"the threads scheduler, which wait for one another's GIL: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "threads": n,
            "waited_share": waited,
            "predicted_low_s": recording.wall - saved[1],
            "predicted_high_s": recording.wall - saved[0],
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _PROCESSES.format(n=n, time=_predicted(recording, saved))
            + (_ONE_BY_ONE.format(tasks=count(len(rows), "task")) if few else ""),
            _CODE.format(name="processes", more=", chunksize=1" if few else ""),
        ),
        where=where,
        cause="local-scheduler",
    )


# -- processes that copy ------------------------------------------------------------------------


def _copying(recording: Recording, limits: Limits) -> Iterator[Finding]:
    entries = recording.account.entries
    loop = sum(entries[step, "client"].busy for step in _LOOP) / 1e9
    there = sum(entries[step, "client"].busy for step in _THERE) / 1e9
    if loop < limits["copying"] * recording.wall:
        return
    nbytes = sum(entries[step, "client"].nbytes for step in _LOOP)
    table = recording.store.table("run")
    n = max(1, len(np.unique(table["thread"])))
    # Whether the tasks would wait for one another's GIL is not known: at least nothing is saved.
    saved = 0.0, min(loop + there / n, recording.wall)
    runs = recording.timeline.runs
    where = _main(recording, np.flatnonzero(runs["run"] >= LOCAL))
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The processes scheduler copies what `{where.prefix}`"
            f"{made_at(where.file, where.line)} takes and gives: {of_wall(loop, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "processes": n,
            "copying_s": loop,
            "copying_in_processes_s": there,
            "copied_bytes": nbytes,
            "predicted_low_s": recording.wall - saved[1],
        },
        cost_s=loop,
        saving_s=saved,
        fix=Fix(
            _THREADS.format(time=_predicted(recording, saved)),
            _CODE.format(name="threads", more=""),
        ),
        where=where,
        cause="local-scheduler",
    )


# -- both -----------------------------------------------------------------------------------------


def _predicted(recording: Recording, saved: tuple[float, float]) -> str:
    low, high = recording.wall - saved[1], recording.wall - saved[0]
    return span(low, high) if high > low else seconds(high)


def _main(recording: Recording, rows: Ints) -> Where:
    """The layer in whose tasks most of the time went."""
    table = recording.layers()
    table = table[table["layer"] != ""]
    if not len(table) or not len(rows):
        return Where()
    row = table.iloc[int(table["execution_s"].to_numpy().argmax())]
    return Where(str(row["file"]), int(row["line"]), "", str(row["layer"]), str(row["prefix"]))


RULE = Rule(
    id="local-scheduler-choice",
    stage=Stage.EXECUTION,
    summary="Threads of the local scheduler wait for the GIL, or its processes copy data.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "tasks": Limit(2, "one task takes as long on any scheduler"),
        "waited": Limit(0.2, "of the tasks' time: with less, processes hardly pay for their start"),
        "share": Limit(0.1, "of the wall time on the critical path: less is not worth the copying"),
        "copying": Limit(0.1, "of the wall time: some copying is what processes cost"),
    },
)
