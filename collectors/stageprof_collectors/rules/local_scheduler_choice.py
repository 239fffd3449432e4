"""A local scheduler that does not fit: threads that share a GIL, processes that copy, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.findings.copying import (
    HERE,
    THERE,
    copied_bytes,
    one_at_a_time_s,
    pipes_s,
    starting_s,
)
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.in_turn import InTurn, in_turn
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.pool import in_pool
from stageprof_collectors.findings.quantity import count, seconds, span
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.others import others
from stageprof_collectors.replay.apart import apart
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: Seconds of a processor that a process takes to start, for each computation anew: it imports what
#: the program's file does. Measured of pools of two: 0.13 for Dask alone, 0.25 with `dask.bag`, 0.8
#: with `dask.array`, 1.0 with `dask.dataframe`. Which of these the file imports is not recorded.
START_S: Final = 1.0
LIGHT_S: Final = 0.2
#: Dask gives a process so many tasks at a time, unless it is told otherwise: with few tasks the
#: other processes get none. There should be a few such batches for each.
BATCH: Final = 6
BATCHES: Final = 4
_PROCESSES: Final = (
    "Use the processes scheduler: Python runs one thread of a process at a time, and these tasks "
    "hold it. With {n} processes the same takes {time}: less if tasks pass little data to one "
    "another, for data are copied between processes. They start anew for each compute, and import "
    "what the program's file does: that takes {start} with Dask's data frames, less without. "
    'Start the program under `if __name__ == "__main__":`.'
)
_ONE_BY_ONE: Final = (
    " A process is given six tasks at a time, which with {tasks} leaves others without: have them "
    "handed out one by one."
)
_THREADS: Final = (
    "Use the threads scheduler: nothing is copied between threads, and they need not be started "
    "anew for each compute. With it the same takes {time}{depends}."
)
_DEPENDS: Final = (
    ": the least if the tasks leave the GIL alone (NumPy, pandas on numbers, PyArrow), the most if "
    "they are pure Python and wait for one another"
)
_SYNCHRONOUS: Final = (
    'This is the synchronous scheduler, which is for debugging: look for `scheduler="synchronous"`'
    ' (or `"sync"`, `"single-threaded"`) in your program, its configuration and its environment '
    "(`DASK_SCHEDULER`), and take it away, or use the {name} scheduler. Processes, where tasks are "
    'Python\'s own steps, are started under `if __name__ == "__main__":`.'
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
    if in_pool(recording):
        yield from _copying(recording, limits)
    elif len(np.unique(runs["thread"][rows])) > 1:
        yield from _contending(recording, rows, limits)
    elif (found := in_turn(recording, rows)) and found.saved_s >= limits["share"] * recording.wall:
        yield _one_by_one(recording, rows, found)


# -- one after another -------------------------------------------------------------------------


def _one_by_one(recording: Recording, rows: Ints, found: InTurn) -> Finding:
    where, _ = _main(recording, rows)
    name, saved = "processes" if found.bytecode else "threads", (0.0, found.saved_s)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(len(rows), 'task')}, most of `{where.prefix}`"
            f"{made_at(where.file, where.line)}, run one after another on your program's own "
            f"thread, of {count(found.cpus, 'CPU')}: {of_wall(found.cost_s, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={"tasks": len(rows), "cpus": found.cpus, "at_once": found.at_once},
        cost_s=found.cost_s,
        saving_s=saved,
        fix=Fix(_SYNCHRONOUS.format(name=name), _CODE.format(name=name, more="")),
        where=where,
        cause="local-scheduler",
    )


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
    n = len(np.unique(runs["thread"][rows]))
    own = np.where(runs["run"] >= LOCAL, np.clip(runs["cpu"] / length, 1 / n, 1.0), 1.0)
    gone = np.minimum(shares, 1 - own)
    computes = sum(graph.number >= LOCAL for graph in recording.timeline.graphs)
    each = _each_s(recording, n) * max(computes, 1)
    low, high = recording.replay.saving(apart(recording, gone))
    cost = _on_path(recording, shares)
    if low > START_S * each and cost >= limits["share"] * recording.wall:
        # At least nothing: how much would be copied between processes nobody has seen.
        yield _processes(recording, rows, waited, cost, (0.0, high - LIGHT_S * each), each)


def _each_s(recording: Recording, n: int) -> float:
    """Seconds in which each of so many processes has had a second of a processor beside others."""
    found = others(recording)
    return 1.0 if found is None else max(1.0, (n + found.kept) / found.cpus)


def _on_path(recording: Recording, waited: Floats) -> float:
    compute = STEP["compute"]
    steps = [s for s in recording.path_steps if s.run >= 0 and s.what.step == compute]
    return sum((s.stop - s.start) * float(waited[s.run]) for s in steps) / 1e9


def _processes(
    recording: Recording,
    rows: Ints,
    waited: float,
    cost: float,
    saved: tuple[float, float],
    each: float,
) -> Finding:
    n = len(np.unique(recording.timeline.runs["thread"][rows]))
    where, tasks = _main(recording, rows)
    start = START_S * each
    few = tasks < BATCHES * BATCH * n
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
            "starting_processes_s": start,
            "predicted_low_s": recording.wall - saved[1],
            "predicted_high_s": recording.wall - saved[0],
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _PROCESSES.format(n=n, time=_predicted(recording, saved), start=seconds(start))
            + (_ONE_BY_ONE.format(tasks=count(tasks, "task")) if few else ""),
            _CODE.format(name="processes", more=", chunksize=1" if few else ""),
        ),
        where=where,
        cause="local-scheduler",
    )


# -- processes that copy ------------------------------------------------------------------------


def _copying(recording: Recording, limits: Limits) -> Iterator[Finding]:
    entries = recording.account.entries
    loop = sum(entries[step, "client"].busy for step in HERE) / 1e9
    there = sum(entries[step, "client"].busy for step in THERE) / 1e9
    n = max(1, len(np.unique(recording.store.table("run")["thread"])))
    start = starting_s(recording)
    pipes = pipes_s(recording, start)
    high = min(start + loop + pipes + there / n, recording.wall)
    # Whether the tasks would wait for one another's GIL is not known: if so, for all they computed.
    saved = max(0.0, high - one_at_a_time_s(recording)), high
    if max(loop, saved[0]) < limits["copying"] * recording.wall:
        return
    where, _ = _main(recording, np.flatnonzero(recording.timeline.runs["run"] >= LOCAL))
    copied = copied_bytes(recording)
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The processes scheduler starts processes and copies what `{where.prefix}`"
            f"{made_at(where.file, where.line)} takes and gives: "
            f"{of_wall(start + loop + pipes, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "processes": n,
            "starting_processes_s": start,
            "copying_s": loop,
            "through_pipes_s": pipes,
            "copying_in_processes_s": there,
            **({"copied_bytes": copied} if copied else {}),
            "predicted_low_s": recording.wall - saved[1],
            "predicted_high_s": recording.wall - saved[0],
        },
        cost_s=start + loop + pipes,
        saving_s=saved,
        fix=Fix(
            _THREADS.format(
                time=_predicted(recording, saved), depends=_DEPENDS if saved[0] < saved[1] else ""
            ),
            _CODE.format(name="threads", more=""),
        ),
        where=where,
        cause="local-scheduler",
    )


# -- both -----------------------------------------------------------------------------------------


def _predicted(recording: Recording, saved: tuple[float, float]) -> str:
    low, high = recording.wall - saved[1], recording.wall - saved[0]
    return span(low, high) if high > low else seconds(high)


def _main(recording: Recording, rows: Ints) -> tuple[Where, int]:
    """The layer in whose tasks most of the time went, and how many these are."""
    table = recording.layers()
    table = table[table["layer"] != ""]
    if not len(table) or not len(rows):
        return Where(), len(rows)
    row = table.iloc[int(table["execution_s"].to_numpy().argmax())]
    where = Where(str(row["file"]), int(row["line"]), "", str(row["layer"]), str(row["prefix"]))
    return where, int(row["tasks"])


RULE = Rule(
    id="local-scheduler-choice",
    stage=Stage.EXECUTION,
    summary="Threads of the local scheduler wait for the GIL, its processes copy, or it has none.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "tasks": Limit(2, "one task takes as long on any scheduler"),
        "waited": Limit(0.2, "of the tasks' time: with less, processes hardly pay for their start"),
        "share": Limit(0.1, "of the wall time on the critical path: less is not worth a change"),
        "copying": Limit(0.1, "of the wall time, or sure to be saved: so much is what they cost"),
    },
)
