"""Tasks that hold their threads, or cannot begin, because others have what they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where, severity
from stageprof_collectors.findings.holdup import Holdup, holdups, without
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.standoff import Standoff, standoff
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_LOCK: Final = (
    "One task at a time has it, and the others hold their threads and wait. Only what no two tasks "
    "may do at once belongs inside it: do the rest before or after. If it guards a file, let each "
    "task write one of its own and put them together at the end; if it guards a service that can "
    "serve several at once, let so many in (the code below)."
)
_GUARD: Final = (
    "Dask's own lock lets one thread of each process at a file, or at a library that cannot serve "
    "two (HDF5 and netCDF). Write what needs none: Zarr, Parquet, a file for each task. "
    "`lock=False` is for arrays in memory, `numpy.memmap` and Zarr of which each piece is whole "
    "chunks, never for HDF5 or netCDF. What is read goes side by side in processes of one thread "
    "each (the code below); writing to one file does not."
)
_SEMAPHORE: Final = (
    "As many tasks have it as it has leases, and the others hold their threads and wait. Give it "
    "more if what it guards can serve more, and do inside it only what has to be limited."
)
_OTHERS: Final = (
    "They hold their threads while they wait. Let Dask wait in their place: give what they wait "
    "for as an argument (a future, a delayed object), so that they begin when it is there. If that "
    "cannot be, let them leave their threads to other tasks meanwhile (the code below)."
)
_RESOURCE: Final = (
    "Others have what there is of it on their workers, while threads wait. Ask for it only in "
    "tasks that need it, for no more than they need and for no longer: what comes before and after "
    "can be a task without it. If workers have more of it than they were told, start them with "
    "that (the code below)."
)
_LEASES: Final = """\
from distributed import Semaphore

# as many as what it guards can serve at once; a lock of that name would be one for one
several = Semaphore(max_leases=4, name={name!r})
# in the task, in place of the lock: with several: ..."""
_PROCESSES: Final = """\
import os

from distributed import LocalCluster

# for reading; as many processes as there were threads: each has a lock of its own
cluster = LocalCluster(n_workers=os.cpu_count(), threads_per_worker=1)"""
_SECEDE: Final = """\
from distributed import rejoin, secede

def wait(waits):  # in the task: wait(event.wait), or wait(queue.get)
    secede()  # its thread's place goes to another task
    try:
        return waits()
    finally:
        rejoin()"""
_STARTED: Final = """\
from distributed import Client, LocalCluster

workers = Client.current().scheduler_info(n_workers=-1)["workers"].values()
more = {{name: 2 * n for worker in workers for name, n in worker["resources"].items()}}
# if they have as much of {name}; on the command line: dask worker ... --resources "..."
cluster = LocalCluster(resources=more)"""
#: Locks looked at: each is a replay.
_MOST: Final = 20
#: Dask's lock of one process's threads.
_DASKS: Final = "SerializableLock"
#: What has turns, and what several may have.
_TURNS: Final = {"Lock": _LOCK, "MultiLock": _LOCK, "Semaphore": _SEMAPHORE}


_HELD: Final = (
    "Whoever has it did not give it back: `acquire` without `release`, or an exception or a return "
    "between the two. The code gives it back whatever happens."
)
_EVER: Final = {"Lock": _HELD, "MultiLock": _HELD, "Semaphore": _HELD}
_WITH: Final = """\
with lock:  # in place of lock.acquire() and lock.release()
    ...  # what one at a time may do"""
_NOBODY: Final = (
    "Nobody does what these tasks wait for (sets the event or the variable, puts something into "
    "the queue): a task that is to do so may have failed, or has no thread to run on while these "
    "hold all of them. Wait with a `timeout=`, and have what is waited for done by something that "
    "does not need a thread of these workers."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each lock (or event, queue, ...) at a line, and for each resource of workers.

    Where tasks wait for ever, that one alone.
    """
    ever = standoff(recording)
    if ever is not None and ever.seconds >= limits["stuck_s"]:
        yield _for_ever(recording, ever)
        return
    least = limits["share"] * recording.wall
    for holdup in holdups(recording)[:_MOST]:
        if holdup.waited_ns / 1e9 >= least:
            finding = _finding(recording, holdup)
            if finding.saving_s[1] >= least:
                yield finding


def _who(tasks: int, prefix: str) -> str:
    return f"{tasks:,} tasks, most of `{prefix}`, wait" if tasks > 1 else f"`{prefix}` waits"


def _finding(recording: Recording, holdup: Holdup) -> Finding:
    left = without(recording, holdup)
    change = Change(compute=left) if holdup.kind else Change(begin=left)
    saved = 0.0, recording.replay.saving(change)[1]
    # Where one task followed the other on the path, each had it in its turn, and none waits there.
    cost = max(holdup.cost / 1e9, saved[1])
    row = _row(recording, holdup)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{_who(len(holdup.waited), row.prefix)} for {_what(holdup)}: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "what": holdup.kind or "resource",
            **({"name": holdup.name} if holdup.name else {}),
            "tasks": len(holdup.waited),
            "waits": holdup.times,
            "waited_s": holdup.waited_ns / 1e9,
            "waiting_at_once": holdup.waited_ns / max(cost * 1e9, 1),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(holdup),
        where=_where(holdup, row),
        cause=f"resource:{holdup.file}:{holdup.line}:{holdup.name}",
    )


def _for_ever(recording: Recording, ever: Standoff) -> Finding:
    holdup, rows = ever.what, recording.groups.rows
    row = next((row for row in rows if row.prefix == ever.prefix), rows[0])
    waits = "waits" if ever.tasks == 1 else "wait"
    return Finding(
        rule=RULE.id,
        severity=Severity.CRITICAL,
        headline=(
            f"{count(ever.tasks, 'task')} of `{ever.prefix}` {waits} for {_what(holdup)}, and "
            f"nothing goes on: {of_wall(ever.seconds, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={"what": holdup.kind, "name": holdup.name, "tasks": ever.tasks},
        cost_s=ever.seconds,
        saving_s=(ever.seconds, ever.seconds),
        fix=Fix(_EVER.get(holdup.kind, _NOBODY), _WITH if holdup.kind in _EVER else ""),
        where=_where(holdup, row),
        cause=f"resource:{holdup.file}:{holdup.line}:{holdup.name}",
    )


def _what(holdup: Holdup) -> str:
    if not holdup.kind:
        return f"resource {holdup.what} of their workers"
    if holdup.kind == _DASKS:
        return f"the `{_DASKS}` of their process{made_at(holdup.file, holdup.line)}"
    return f"{holdup.what}{made_at(holdup.file, holdup.line)}"


def _where(holdup: Holdup, row: Row) -> Where:
    at = (holdup.file, holdup.line) if holdup.file else (row.file, row.line)
    return Where(*at, "", row.layer, row.prefix)


def _row(recording: Recording, holdup: Holdup) -> Row:
    """The layer of most of the time that was waited."""
    groups = recording.groups
    took: dict[int, int] = {}
    for run, ns in holdup.waited.items():
        layer = int(groups.of_run[run])
        took[layer] = took.get(layer, 0) + ns
    return groups.rows[max(took, key=lambda layer: took[layer])]


def _fix(holdup: Holdup) -> Fix:
    if not holdup.kind:
        names = holdup.name.split(", ")
        told = " and ".join(names) if all(map(str.isidentifier, names)) else "it"
        return Fix(_RESOURCE, _STARTED.format(name=told))
    if holdup.kind == _DASKS:
        return Fix(_GUARD, _PROCESSES)
    text = _TURNS.get(holdup.kind, _OTHERS)
    if text is _OTHERS:
        return Fix(text, _SECEDE)
    return Fix(text, _LEASES.format(name=f"several-{holdup.name}") if text is _LOCK else "")


RULE = Rule(
    id="resource-contention",
    stage=Stage.EXECUTION,
    summary="Tasks wait for a lock, a semaphore, an event, a queue or a resource that others have.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "share": Limit(0.05, "of the wall time: with less, no other way of sharing is worth it"),
        "stuck_s": Limit(5, "at the end, in which no task ended: others may take as long"),
    },
)
