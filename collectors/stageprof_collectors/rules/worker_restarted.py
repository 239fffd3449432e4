"""Workers were ended, by their nannies for their memory or since they could not load their tasks.

What they held or ran was done again, or could not be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from stageprof_collectors.account.calls import Calls
from stageprof_collectors.account.cut_off import took
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where, severity
from stageprof_collectors.findings.quantity import count, seconds, share, size
from stageprof_collectors.findings.rule import Ground, Limits, Rule
from stageprof_collectors.findings.sizing import bigger, sizing
from stageprof_collectors.findings.unloaded import Unloaded, unloaded
from stageprof_collectors.replay.absence import Absence
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.tables.incidents import Loss
from stageprof_runtime.event import STATUS
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_LOST = STATUS.index("lost")
_RELEASED = STATUS.index("released")

_UNKNOWN = Fix(
    "Dask did not end these workers: look for a crash in their logs, for the operating system's "
    "or the batch system's own limits (`dmesg`, the job's report), or for machines taken back."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:  # noqa: ARG001 (it has none)
    """One finding for all workers that were lost with something of value."""
    incidents, wall = recording.incidents, recording.wall
    lost = [loss for loss in incidents.losses if not loss.expected and loss.results + loss.running]
    if not lost:
        return
    killed = {kill.worker: kill.taken for kill in incidents.kills}
    reason = None if killed else unloaded(recording)
    again, ended = wasted(recording), killed or (reason.workers if reason else ())
    cost = _cost(recording, again, ended, memory=bool(killed))
    saving = _saving(recording, again, cost, ended, memory=bool(killed))
    found = sizing(recording) if killed else None
    saving = found.likely(saving) if found else saving
    # What the others did meanwhile is on the path as if nothing had happened.
    cost = max(cost, saving[1])
    fix = bigger(recording, found) if found else reason.fix if reason else _UNKNOWN
    yield Finding(
        rule=RULE.id,
        severity=max(severity(saving, wall), Severity.MODERATE, key=_gravity),
        headline=_headline(recording, lost, killed, reason, cost),
        stage=Stage.EXECUTION,
        evidence={
            "workers_lost": len(lost),
            "ended_for_memory": len(killed),
            "results_lost": sum(loss.results for loss in lost),
            "tasks_cut_off": sum(loss.running for loss in lost),
            **_done_again(recording, again),
            **(shortage.sizes(found) if found else {}),
            **({"could_not_load": reason.why} if reason else {}),
        },
        cost_s=cost,
        saving_s=saving,
        fix=fix,
        where=_tasks(recording) if reason else shortage.largest(recording),
        cause=shortage.gone(recording),
    )


def _tasks(recording: Recording) -> Where:
    """The layer of most of the tasks that were cut off."""
    lost = recording.timeline.runs["status"] == _LOST
    if not lost.any():
        return Where()
    row = recording.groups.most(lost)
    return Where(row.file, row.line, "", row.layer, row.prefix)


def _saving(
    recording: Recording, again: Ints, cost: float, ended: Collection[str], *, memory: bool
) -> tuple[float, float]:
    """At least without work in vain and with all threads; at most also without new workers.

    Of those of which nobody knows why they went it may be nothing: others may go the next time.
    """
    trouble = shortage.both(recording) if memory else {}
    low, high = shortage.saving(recording, trouble, spill=memory, gone=again)
    if not ended:
        return low, max(high, cost)
    absence, wall = Absence(recording, again, ended), recording.wall
    missed = absence.seconds
    most = max(high, cost, missed + absence.start_s)
    return min(max(low, missed), wall), min(most, wall)


def _cost(recording: Recording, again: Ints, ended: Collection[str], *, memory: bool) -> float:
    """Seconds of the blocking account in vain work, and in waiting for workers to come back."""
    incidents = recording.incidents
    when = [gone.t for gone in (incidents.kills or incidents.losses) if gone.worker in ended]
    cost, missing = cost_of(recording, runs=again.tolist()), shortage.missing_cost(recording, when)
    if not memory:
        return max(cost, missing)
    cost += missing + shortage.pause_cost(recording) + shortage.spill_cost(recording)
    return min(cost, recording.wall)


def _gravity(level: Severity) -> int:
    return -list(Severity).index(level)


def _headline(
    recording: Recording,
    lost: list[Loss],
    killed: dict[str, int],
    reason: Unloaded | None,
    cost: float,
) -> str:
    results, running = sum(loss.results for loss in lost), sum(loss.running for loss in lost)
    what = f"with {count(results, 'result')} and {count(running, 'unfinished task')}"
    amount = f"{seconds(cost)} of {seconds(recording.wall)}"
    if reason:
        many = count(len(reason.workers), "worker")
        return f"{many} could not load their tasks ({reason.why}) and went, {what}: {amount}"
    if not killed:
        return f"{count(len(lost), 'worker')} went unexpectedly, {what}: {amount}"
    limits = next(iter(recording.memory.limits.values()), None)
    over = f" over {share(limits.terminate)} of {size(limits.limit)}" if limits else ""
    return (
        f"{count(len(killed), 'worker')} ended by Dask for memory{over}, the largest at "
        f"{size(max(killed.values()))}, {what}: {amount}"
    )


def wasted(recording: Recording) -> Ints:
    """Rows of the runs that were lost, or whose results went with a worker and were made again.

    What was computed again for another reason (nobody kept it; it failed) is not of the worker's.
    """
    runs, calls = recording.timeline.runs, Calls(recording)
    done = np.flatnonzero(runs["status"] != _RELEASED)
    keys = recording.store.keys(runs["key"][done])
    latest: dict[str, int] = {}
    again = []
    for key, row in zip(keys, done.tolist(), strict=True):
        before = latest.get(key, row)
        if before != row and calls.gone(before, row):
            again.append(before)
        latest[key] = row
    lost = done[runs["status"][done] == _LOST].tolist()
    return np.unique(np.array([*again, *lost], np.int64))


def _done_again(recording: Recording, rows: Ints) -> dict[str, Any]:
    """Without what only waited in the queue of a worker that went."""
    lengths = took(recording.timeline)[rows]
    begun = lengths[lengths >= 0]
    return {"tasks_done_again": len(begun), "done_again_s": float(begun.sum() / 1e9)}


RULE = Rule(
    id="worker-restarted",
    stage=Stage.EXECUTION,
    summary="Workers were lost, mostly to their memory, and their work was done again.",
    find=find,
    ground=Ground.CROWDED,
    # That there was no worker says less than why.
    instead_of=frozenset({"late-workers"}),
)
