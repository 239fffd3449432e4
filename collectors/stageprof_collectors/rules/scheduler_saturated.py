"""A scheduler that has no time left, while the threads that it should give tasks to stand idle."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.attempts import worked
from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.findings.advice import in_batches
from stageprof_collectors.findings.batch import batch, rounded
from stageprof_collectors.findings.calling import calling
from stageprof_collectors.findings.chunking import Chunking
from stageprof_collectors.findings.crowd import Crowd, Kind
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.standing import series
from stageprof_collectors.others import beside
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "The scheduler needs {each} for a task, and a task takes {work}: it keeps about {most} busy, "
    "and there are {threads}. More workers would not help. "
)
_FEWER: Final = "Give it fewer and larger tasks: about {k:,} pieces of work in each instead of one."


class Load(NamedTuple):
    """How busy a scheduler's loop was while tasks ran, and how idle the threads."""

    #: in what part of the time it had something to do, and what its thread used of a processor
    busy: float
    cpu: float
    idle: float
    #: seconds of its loop for each task, and of the middle one of the tasks
    each_s: float
    work_s: float
    threads: int

    @property
    def most(self) -> float:
        """Threads that it can keep busy."""
        return self.work_s / max(self.each_s, 1e-9)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for the scheduler."""
    runs = recording.timeline.runs
    if len(runs["run"]) < limits["tasks"]:
        return
    load = _load(recording)
    if load is None or load.busy < limits["busy"] or load.idle < limits["idle"]:
        return
    if load.threads < limits["threads"] or load.most >= load.threads:
        return
    crowds = recording.crowds
    found = [crowd for kind in Kind if (crowd := crowds.of(kind)) is not None]
    crowd = max(found, key=lambda crowd: len(crowd.rows))
    overhead = Overhead(recording, crowd)
    chunking = Chunking(recording, crowd) if crowd.kind == Kind.CHUNKS else None
    k = chunking.fewer(overhead) if chunking else rounded(batch(overhead, overhead.at_once))
    if k > 1:
        yield _finding(recording, crowd, overhead, load, k, chunking)


def _load(recording: Recording) -> Load | None:
    """From the first to the last of the tasks; None if the loop's time is not known."""
    runs = recording.timeline.runs
    rows = np.flatnonzero((runs["run"] < LOCAL) & worked(runs))
    roles = [place.role for place in recording.store.places]
    told = {p: s for p, s in series(recording, "loop.cpu_s").items() if roles[p] == "scheduler"}
    if not len(rows) or not told:
        return None
    start, stop = int(runs["assigned"][rows].min()), int(runs["stop"][rows].max())
    used = sum(_used(*samples, start, stop) for samples in told.values())
    taken = used if _crowded_out(recording, told) else max(used, _taken(recording, start, stop))
    threads = Crew(recording).threads
    length = (runs["stop"] - runs["start"])[rows] / 1e9
    wall = max((stop - start) / 1e9, 1e-9)
    idle = 1 - float(length.sum()) / (wall * max(threads, 1))
    each = taken / len(rows)
    return Load(taken / wall, used / wall, idle, each, float(np.median(length)), threads)


def _crowded_out(recording: Recording, schedulers: Container[int]) -> bool:
    """Whether other programs kept the processors of a scheduler's machine busy.

    Its loop waits for one then, however few tasks there are.
    """
    return any(
        found.many and any(place in schedulers for place in places)
        for places, found in beside(recording)
    )


def _taken(recording: Recording, start: int, stop: int) -> float:
    """Seconds for which loops of schedulers were seen at something else than waiting for messages.

    Beside what a loop uses of a processor that is what it waits for one, and for the GIL.
    """
    looks = recording.timeline.read("flame", "t")
    roles = np.array([place.role == "scheduler" for place in recording.store.places])
    mine = roles[looks["place"]] & (looks["t"] >= start) & (looks["t"] <= stop)
    return float(looks["total"][mine].sum() / 1e9)


def _used(
    t: np.ndarray[tuple[int], np.dtype[np.int64]],
    cpu: np.ndarray[tuple[int], np.dtype[np.float64]],
    start: int,
    stop: int,
) -> float:
    """Seconds of a processor between two instants, by what was told around them."""
    first, last = np.interp([start, stop], t.astype(float), cpu)
    return float(last - first)


def _finding(
    recording: Recording,
    crowd: Crowd,
    overhead: Overhead,
    load: Load,
    k: int,
    chunking: Chunking | None,
) -> Finding:
    saved = recording.replay.saving(overhead.merged(k))
    main, cost = crowd.main, overhead.seconds
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The scheduler is busy for {share(load.busy)} of the time with "
            f"{len(crowd.rows):,} "
            f"tasks, most of `{main.prefix}`{made_at(main.file, main.line)}, while threads are "
            f"idle for {share(load.idle)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.SCHEDULING,
        evidence={
            "loop_busy_share": load.busy,
            "loop_cpu_share": load.cpu,
            "threads_idle_share": load.idle,
            "loop_each_s": load.each_s,
            "task_s": load.work_s,
            "threads": load.threads,
            "saturated_at_threads": load.most,
            "tasks": len(crowd.rows),
            "batch_size": k,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, crowd, load, k, chunking),
        where=Where(main.file, main.line, "", main.layer, main.prefix),
        cause=crowd.cause,
    )


def _fix(recording: Recording, crowd: Crowd, load: Load, k: int, chunking: Chunking | None) -> Fix:
    text = _TEXT.format(
        each=seconds(load.each_s),
        work=seconds(load.work_s),
        most=count(max(1, round(load.most)), "thread"),
        threads=load.threads,
    )
    if chunking:
        fix = chunking.larger(load.each_s, k)
        return Fix(text + fix.text, fix.code)
    code = in_batches(word(crowd.main.prefix, "work"), k, calling(recording, crowd.rows))
    return Fix(text + _FEWER.format(k=k), code)


RULE = Rule(
    id="scheduler-saturated",
    stage=Stage.SCHEDULING,
    summary="The scheduler has no time left while threads stand idle.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "tasks": Limit(500, "a task costs the scheduler about a millisecond: fewer never saturate"),
        "busy": Limit(0.5, "of its time; in the rest clients and workers do their part"),
        "idle": Limit(0.5, "of the threads' time: with less, they are the ones who are waited for"),
        "threads": Limit(4, "with fewer it is what each task costs that counts: tiny-tasks"),
    },
)
