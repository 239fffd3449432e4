"""Tasks that read little at a time and wait, while their threads have nothing else to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds, share, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.others import beside
from stageprof_collectors.replay.apart import concurrency
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
#: Of a process's time: so much is computed where its threads wait for one another.
FULL: Final = 0.8
#: Of a processor: tasks that read compute less, all those of a process together.
LEAST: Final = 0.1
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


class Reads(NamedTuple):
    """What is known of each run, were it one that reads."""

    #: whether it needed no other run, and it is known whether it waited
    leaf: NDArray[np.bool_]
    #: of its time the part that it computed, or waited for the GIL or a processor
    busy: NDArray[np.float64]
    #: bytes of its result; not a number where that is not known
    brought: NDArray[np.float64]


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each prefix that reads."""
    runs, reading = recording.timeline.runs, set(filter(READS.search, recording.layered.prefixes))
    if not reading:
        return
    reads = Reads(_leaves(recording), _busy(recording), _brought(recording))
    waiting = _waiting(recording, reads, limits)
    if int(waiting.sum()) < limits["reads"]:
        return
    prefixes = recording.prefixes.astype(str)
    for prefix in sorted(reading.intersection(prefixes[waiting].tolist())):
        mine, local = reads.leaf & (prefixes == prefix), runs["run"] >= LOCAL
        for rows in (np.flatnonzero(mine & ~local), np.flatnonzero(mine & local)):
            if len(rows) >= limits["reads"] and _small_and_idle(recording, reads, rows, limits):
                yield from _found(recording, reads, prefix, rows, limits)


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


def _brought(recording: Recording) -> NDArray[np.float64]:
    runs = recording.timeline.runs
    brought = np.where(runs["run"] < LOCAL, runs["nbytes"].astype(float), np.nan)
    rows, nbytes = _told(recording)
    brought[rows] = np.where(nbytes < 0, np.nan, nbytes)
    return brought


def _busy(recording: Recording) -> NDArray[np.float64]:
    runs = recording.timeline.runs
    busy = runs["cpu"] / np.maximum(runs["stop"] - runs["start"], 1)
    waited, had = recording.timeline.gil.shares, _had(recording)
    if waited is None or had:
        full = _full(recording, had, 1.0 if waited is None else np.inf)
        waited = full if waited is None else np.maximum(waited, full)
    found: NDArray[np.float64] = np.clip(busy + waited, 0, 1)
    return found


def _had(recording: Recording) -> dict[int, float]:
    """Of a processor what a process can have had, by its place, where hardly any was idle."""
    numbers, had = recording.timeline.at.numbers, {}
    for places, found in beside(recording):
        mine = [place for place in numbers if place in places]
        if found.full and mine:
            left = (found.cpus - found.kept) / len(mine)
            had.update(dict.fromkeys(mine, float(np.clip(left, LEAST, 1))))
    return had


def _full(recording: Recording, had: Mapping[int, float], rest: float) -> NDArray[np.float64]:
    """1 for runs during which their process computed nearly all that it had (else `rest`)."""
    runs, of_place = recording.timeline.runs, recording.timeline.at
    full = np.zeros(len(runs["run"]))
    for place in of_place.numbers:
        mine = of_place.of(place)
        start, stop, cpu = (runs[name][mine] for name in ("start", "stop", "cpu"))
        enough = FULL * had.get(place, rest) * np.maximum(stop - start, 1)
        full[mine] = _computed(start, stop, cpu) >= enough
    return full


def _computed(start: Rows, stop: Rows, cpu: Rows) -> NDArray[np.float64]:
    """What all of these runs computed during each, ns: evenly over its time each."""
    rate = cpu / np.maximum(stop - start, 1)
    order = np.argsort(t := np.concatenate([start, stop]), kind="stable")
    t, rates = t[order], np.cumsum(np.concatenate([rate, -rate])[order])
    total = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(t))])
    found: NDArray[np.float64] = np.interp(stop, t, total) - np.interp(start, t, total)
    return found


def _waiting(recording: Recording, reads: Reads, limits: Limits) -> NDArray[np.bool_]:
    runs = recording.timeline.runs
    long = runs["stop"] - runs["start"] > limits["least_s"] * 1e9
    return reads.leaf & (reads.busy < limits["cpu"]) & long


def _small_and_idle(recording: Recording, reads: Reads, rows: Rows, limits: Limits) -> bool:
    brought = reads.brought[rows]
    if np.isnan(brought).all():
        return False
    rate = _rate(recording, reads, rows)
    if limits["expected_bytes_per_s"] and rate < limits["expected_bytes_per_s"] / 2:
        return True
    length = _length(recording, rows)
    # A process's first run imports what it needs: it must not outweigh all others.
    busy = float(np.average(reads.busy[rows], weights=np.minimum(length, np.median(length))))
    return bool(busy < limits["cpu"] and np.nanmedian(brought) < limits["bytes"])


def _length(recording: Recording, rows: Rows) -> NDArray[np.float64]:
    """Seconds of runs; never none at all."""
    runs = recording.timeline.runs
    length: NDArray[np.float64] = np.maximum(runs["stop"] - runs["start"], 1)[rows] / 1e9
    return length


def _rate(recording: Recording, reads: Reads, rows: Rows) -> float:
    """Bytes that a thread of a worker brings in a second."""
    brought = reads.brought[rows]
    known = ~np.isnan(brought)
    return float(brought[known].sum()) / float(_length(recording, rows)[known].sum())


def _found(
    recording: Recording, reads: Reads, prefix: str, rows: Rows, limits: Limits
) -> Iterator[Finding]:
    cost = cost_of(recording, steps=_COMPUTE, runs=rows.tolist())
    if cost < limits["share"] * recording.wall:
        return
    runs, readers = recording.timeline.runs, _readers(recording, rows)
    length = _length(recording, rows)
    if readers.each >= THREADS:
        return
    threads = int(min(THREADS, max(2 * readers.each, -(-len(rows) // readers.workers))))
    saved = _saving(recording, readers, threads, cost)
    cost = max(cost, saved[1])  # what others waited behind the reads
    median, rate = float(np.nanmedian(reads.brought[rows])), _rate(recording, reads, rows)
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
        at_once = concurrency(runs["start"][rows], runs["stop"][rows])
        return Readers(1, round(float(at_once.max())), local=True)
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
    if not readers.local or readers.each > 1:
        return saved
    return 0.0, min(saved[1] or cost, cost * (1 - 1 / threads))


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
