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
from stageprof_collectors.findings.waiters import (
    THREADS,
    Rows,
    Waiters,
    length,
    occupied,
    saving,
    waiters,
)
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.tables.tasks import layer_of
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: A task that waits may wait for a processor or a lock as well: only those whose name says so, in a
#: word that begins so, are taken for reading.
READS: Final = re.compile(
    r"(?i)(?<![a-z])(?:im)?"
    r"(?:read|load|open|fetch|download|scan|ingest|parquet|csv|zarr|hdf|json|image|block|file|from)"
)

_COMPUTE: Final = frozenset({STEP["compute"]})

_TEXT: Final = (
    "Each of these tasks waits for its storage (its thread computes for {cpu} of the time) and "
    "brings {each}. Storage far away answers many requests at a time, but a worker has only "
    "{threads} to wait in. Give the workers more threads, as below in place of your own cluster; "
    "or read with a call that fetches many pieces at once (`fsspec`'s `cat(paths)`); or store "
    "fewer, larger pieces. A store such as S3 gives a node some 200 MB/s, and no more."
)
_LOCAL_TEXT: Final = (
    "Each of these tasks waits for its storage (its thread computes for {cpu} of the time) and "
    "brings {each}. Storage far away answers many requests at a time; here it gets {threads} at a "
    "time. Use the threads scheduler with more of them, as below; or read with a call that "
    "fetches many pieces at once (`fsspec`'s `cat(paths)`); or store fewer, larger pieces."
)


class Reads(NamedTuple):
    """What is known of each run, were it one that reads."""

    #: whether it needed no other run, and it is known whether it waited
    leaf: NDArray[np.bool_]
    #: of its time the part in which it did not wait for its storage
    busy: NDArray[np.float64]
    #: bytes of its result; not a number where that is not known
    brought: NDArray[np.float64]


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each prefix that reads."""
    runs, reading = recording.timeline.runs, set(filter(READS.search, recording.layered.prefixes))
    if not reading:
        return
    reads = Reads(_leaves(recording), occupied(recording), brought(recording))
    waiting = _waiting(recording, reads, limits)
    if int(waiting.sum()) < limits["reads"]:
        return
    prefixes, kinds = recording.layered.kinds()
    for kind in np.unique(kinds[waiting]).tolist():
        mine, local = reads.leaf & (kinds == kind), runs["run"] >= LOCAL
        for rows in (np.flatnonzero(mine & ~local), np.flatnonzero(mine & local)):
            if len(rows) >= limits["reads"] and _small_and_idle(recording, reads, rows, limits):
                yield from _found(recording, reads, prefixes[kind], rows, limits)


def _leaves(recording: Recording) -> NDArray[np.bool_]:
    runs, needs = recording.timeline.runs, recording.timeline.depends
    leaves: NDArray[np.bool_] = (np.diff(needs.first) == 0) & (runs["seen"] == 1)
    rows, _ = _told(recording)
    waited = np.isin(np.arange(len(leaves)), rows)
    return leaves & (waited | (runs["run"] < LOCAL))


def _told(recording: Recording) -> tuple[Rows, Rows]:
    """Runs of local schedulers that waited, and the bytes that they brought; -1 if not weighed."""
    told = recording.store.table("result")
    rows = recording.timeline.runs_of(told["run"], told["place"])
    return rows[rows >= 0], told["nbytes"][rows >= 0]


def brought(recording: Recording) -> NDArray[np.float64]:
    """Bytes of the result of each run; not a number where they were not weighed."""
    runs = recording.timeline.runs
    found = np.where(runs["run"] < LOCAL, runs["nbytes"].astype(float), np.nan)
    rows, nbytes = _told(recording)
    found[rows] = np.where(nbytes < 0, np.nan, nbytes)
    return found


def _waiting(recording: Recording, reads: Reads, limits: Limits) -> NDArray[np.bool_]:
    runs = recording.timeline.runs
    long = runs["stop"] - runs["start"] > limits["least_s"] * 1e9
    return reads.leaf & (reads.busy < limits["cpu"]) & long


def _small_and_idle(recording: Recording, reads: Reads, rows: Rows, limits: Limits) -> bool:
    nbytes = reads.brought[rows]
    if np.isnan(nbytes).all():
        return False
    rate = _rate(recording, reads, rows)
    if limits["expected_bytes_per_s"] and rate < limits["expected_bytes_per_s"] / 2:
        return True
    took = length(recording, rows)
    # A process's first run imports what it needs: it must not outweigh all others.
    mean = float(np.average(reads.busy[rows], weights=np.minimum(took, np.median(took))))
    return bool(mean < limits["cpu"] and np.nanmedian(nbytes) < limits["bytes"])


def _rate(recording: Recording, reads: Reads, rows: Rows) -> float:
    """Bytes that a thread of a worker brings in a second."""
    nbytes = reads.brought[rows]
    known = ~np.isnan(nbytes)
    return float(nbytes[known].sum()) / float(length(recording, rows)[known].sum())


def _found(
    recording: Recording, reads: Reads, prefix: str, rows: Rows, limits: Limits
) -> Iterator[Finding]:
    cost = cost_of(recording, steps=_COMPUTE, runs=rows.tolist())
    if cost < limits["share"] * recording.wall:
        return
    runs, readers = recording.timeline.runs, waiters(recording, rows)
    took = length(recording, rows)
    if readers.each >= THREADS:
        return
    threads = readers.more(len(rows))
    saved = saving(recording, readers, threads, cost)
    cost = max(cost, saved[1])  # what others waited behind the reads
    median, rate = float(np.nanmedian(reads.brought[rows])), _rate(recording, reads, rows)
    computed = float(runs["cpu"][rows].sum() / 1e9 / max(float(took.sum()), 1e-9))
    key = recording.store.keys(runs["key"][rows[:1]])[0]
    line = recording.groups.line_of(layer_of(key))
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(len(rows), 'read')} of `{prefix}`{made_at(line.file, line.line)} bring "
            f"{size(median)} each and wait {seconds(float(np.median(took)))} for it: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "reads": len(rows),
            "median_bytes": median,
            "bytes_per_s": rate,
            "cpu_share": computed,
            "threads": readers.each,
            "threads_asked_for": threads,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(readers, threads, share(computed), size(median)),
        where=Where(line.file, line.line, "", "", prefix),
        cause=f"layer:{prefix}",
    )


def _fix(readers: Waiters, threads: int, cpu: str, each: str) -> Fix:
    if readers.local:
        text = _LOCAL_TEXT.format(cpu=cpu, each=each, threads=readers.each)
    else:
        text = _TEXT.format(cpu=cpu, each=each, threads=count(readers.each, "thread"))
    return Fix(text, readers.code(threads))


RULE = Rule(
    id="read-bandwidth",
    stage=Stage.EXECUTION,
    summary="Many small reads, one after another, wait for their storage.",
    find=find,
    ground=Ground.REWRITTEN,
    instead_of=frozenset({"io-bound"}),
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
