"""Tasks that read little at a time and wait, while their threads have nothing else to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds, share, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.lines import Lines
from stageprof_collectors.tables.tasks import layer_of
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Rows = NDArray[np.int64]

#: A task that waits may wait for a processor or a lock as well: only those whose name says so are
#: taken for reading.
READS: Final = re.compile(
    r"(?i)read|load|open|fetch|download|scan|ingest|parquet|csv|zarr|hdf|json|image|block|file|from"
)

#: Threads of a worker that the fix asks for at most: more requests at a time than this are refused
#: or queued by many stores.
THREADS: Final = 16
_COMPUTE: Final = frozenset({STEP["compute"]})

_TEXT: Final = (
    "Each of these tasks waits for its storage (its thread computes for {cpu} of the time) and "
    "brings {each}. Storage far away answers many requests at a time, but a worker has only "
    "{threads} to wait in. Give the workers more threads, as below in place of your own cluster; "
    "or read with a call that fetches many pieces at once (`fsspec`'s `cat(paths)`); or store "
    "fewer, larger pieces. A store such as S3 gives a node some 200 MB/s, and no more."
)
_CODE: Final = """\
from distributed import Client, LocalCluster

cluster = LocalCluster(n_workers={workers}, threads_per_worker={threads})
client = Client(cluster)
# on other clusters: dask worker {address} --nthreads {threads}"""
_LOCAL_TEXT: Final = (
    "Each of these tasks waits for its storage (its thread computes for {cpu} of the time) and "
    "brings {each}. Storage far away answers many requests at a time; here it gets {threads} at a "
    "time. Use the threads scheduler with more of them, as below; or read with a call that "
    "fetches many pieces at once (`fsspec`'s `cat(paths)`); or store fewer, larger pieces."
)
_LOCAL_CODE: Final = """\
import dask

dask.config.set(scheduler="threads", num_workers={threads})"""


class Readers(NamedTuple):
    """What can wait for storage at a time."""

    #: workers of the cluster, and the threads of each; or 1, and those of a local scheduler
    workers: int
    each: int
    local: bool = False


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each prefix that reads."""
    runs = recording.timeline.runs
    if not len(runs["run"]):
        return
    waiting = _waiting(recording, limits)
    if int(waiting.sum()) < limits["reads"]:
        return
    prefixes = recording.prefixes.astype(str)
    for prefix in filter(READS.search, np.unique(prefixes[waiting]).tolist()):
        rows = np.flatnonzero(_leaves(recording) & (prefixes == prefix))
        if len(rows) >= limits["reads"] and _small_and_idle(recording, rows, limits):
            yield from _found(recording, prefix, rows, limits)


def _leaves(recording: Recording) -> NDArray[np.bool_]:
    """Runs that needed no other run, were seen by their worker, and tell how much they brought."""
    runs, needs = recording.timeline.runs, recording.timeline.depends
    leaves: NDArray[np.bool_] = (np.diff(needs.first) == 0) & (runs["seen"] == 1)
    leaves &= _brought(recording) >= 0
    return leaves


def _brought(recording: Recording) -> Rows:
    """Bytes of each run's result; -1 for those of local schedulers that did not wait."""
    runs, told = recording.timeline.runs, recording.store.table("result")
    brought = np.where(runs["run"] < LOCAL, runs["nbytes"], -1)
    rows = recording.timeline.runs_of(told["run"], told["place"])
    brought[rows[rows >= 0]] = told["nbytes"][rows >= 0]
    return brought


def _waiting(recording: Recording, limits: Limits) -> NDArray[np.bool_]:
    runs = recording.timeline.runs
    length = runs["stop"] - runs["start"]
    idle = runs["cpu"] < limits["cpu"] * length
    long = length > limits["least_s"] * 1e9
    return _leaves(recording) & idle & long


def _small_and_idle(recording: Recording, rows: Rows, limits: Limits) -> bool:
    runs = recording.timeline.runs
    length = (runs["stop"] - runs["start"])[rows]
    busy = float(runs["cpu"][rows].sum() / max(1, int(length.sum())))
    rate = _rate(recording, rows)
    if limits["expected_bytes_per_s"] and rate < limits["expected_bytes_per_s"] / 2:
        return True
    return bool(busy < limits["cpu"] and np.median(_brought(recording)[rows]) < limits["bytes"])


def _rate(recording: Recording, rows: Rows) -> float:
    """Bytes that a thread of a worker brings in a second."""
    runs = recording.timeline.runs
    length = float((runs["stop"] - runs["start"])[rows].sum()) / 1e9
    return float(_brought(recording)[rows].sum()) / max(length, 1e-9)


def _found(recording: Recording, prefix: str, rows: Rows, limits: Limits) -> Iterator[Finding]:
    cost = cost_of(recording, steps=_COMPUTE, runs=rows.tolist())
    if cost < limits["share"] * recording.wall:
        return
    runs, readers = recording.timeline.runs, _readers(recording, rows)
    length = (runs["stop"] - runs["start"])[rows] / 1e9
    if readers.each >= THREADS:
        return
    threads = int(min(THREADS, max(2 * readers.each, -(-len(rows) // readers.workers))))
    saved = _saving(recording, readers, threads, cost)
    median, rate = float(np.median(_brought(recording)[rows])), _rate(recording, rows)
    busy = float(runs["cpu"][rows].sum() / 1e9 / max(float(length.sum()), 1e-9))
    key = recording.store.keys(runs["key"][rows[:1]])[0]
    line = Lines(recording.store).of(layer_of(key))
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(len(rows), 'read')} of `{prefix}`{made_at(line.file, line.line)} bring "
            f"{size(median)} each and wait {seconds(float(np.median(length)))} for it: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "reads": len(rows),
            "median_bytes": median,
            "bytes_per_s": rate,
            "cpu_share": busy,
            "threads": readers.each,
            "threads_asked_for": threads,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(readers, threads, share(busy), size(median)),
        where=Where(line.file, line.line, "", "", prefix),
        cause=f"layer:{prefix}",
    )


def _readers(recording: Recording, rows: Rows) -> Readers:
    """Those of runs, all on a cluster or all on a local scheduler."""
    runs = recording.timeline.runs
    if runs["run"][rows[0]] >= LOCAL:
        return Readers(1, len(np.unique(runs["thread"][rows])), local=True)
    workers = recording.workers()
    each = max(1, int(workers["threads"].max())) if len(workers) else 1
    return Readers(max(1, len(workers)), each)


def _saving(
    recording: Recording, readers: Readers, threads: int, cost: float
) -> tuple[float, float]:
    """Of tasks on the user's own thread (the synchronous scheduler) at most what they cost there.

    A replay has that thread as it was.
    """
    saved = recording.replay.saving(Change(threads=threads))
    alone = readers.local and readers.each == 1
    return (0.0, cost * (1 - 1 / threads)) if alone and not saved[1] else saved


def _fix(readers: Readers, threads: int, cpu: str, each: str) -> Fix:
    if readers.local:
        text = _LOCAL_TEXT.format(cpu=cpu, each=each, threads=readers.each)
        return Fix(text, _LOCAL_CODE.format(threads=threads))
    text = _TEXT.format(cpu=cpu, each=each, threads=count(readers.each, "thread"))
    code = _CODE.format(workers=readers.workers, threads=threads, address="tcp://scheduler:8786")
    return Fix(text, code)


RULE = Rule(
    id="read-bandwidth",
    stage=Stage.EXECUTION,
    summary="Many small reads, one after another, wait for their storage.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "reads": Limit(20, "fewer are no pattern"),
        "bytes": Limit(1e6, "of a read: the time of larger ones goes into their bytes"),
        "cpu": Limit(0.2, "of a read's time: a thread that computes more is not waiting"),
        "least_s": Limit(0.005, "of a read: what Dask needs for a task outweighs shorter ones"),
        "share": Limit(0.03, "of the wall time on the critical path: less is not worth a change"),
        "expected_bytes_per_s": Limit(
            0, "what your storage gives one thread, if you have measured it; half is slow"
        ),
    },
)
