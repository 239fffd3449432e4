"""Threads without work while others have some: too few tasks, or tasks that wait elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.calls import Calls
from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.finding import Finding, Where, severity
from stageprof_collectors.findings.idleness import Idleness
from stageprof_collectors.findings.lack import why
from stageprof_collectors.findings.library_threads import library_s
from stageprof_collectors.findings.misplaced import fix, line, passed_on
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.skew import Skews
from stageprof_collectors.findings.training import Trainings
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = frozenset({STEP["compute"]})
#: A further thread does so many times one's work: next to nothing is left of it.
_GONE: Final = 1e6


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for threads that lacked tasks, or one for tasks that were in the wrong place."""
    idleness = Idleness(recording)
    if not idleness:
        return
    threads, wall = idleness.crew.threads, recording.wall
    misplaced, wanting = idleness.misplaced_s / threads, idleness.want_s / threads
    some = 0 < len(idleness.idle) < len(idleness.crew.members)
    # Where all are idle for that long, they wait for what hands tasks out.
    least = max(wanting, limits["share"] * wall) if some else limits["misplaced"] * wall
    if misplaced >= least:
        yield _elsewhere(recording, idleness, misplaced)
    elif idleness.idle or wanting >= limits["wanting"] * wall:
        yield from _for_want(recording, idleness, limits)


def _for_want(recording: Recording, idleness: Idleness, limits: Limits) -> Iterator[Finding]:
    """Too few tasks, if that is worth a finding and nothing narrower explains it."""
    cost, least = _cost(recording, idleness), limits["share"] * recording.wall
    if cost < least or Trainings(recording) or explained(recording, idleness):
        return
    used = library_s(recording, idleness.alone, idleness.lacking)
    if used < limits["library"] * idleness.want_s:
        found = _few(recording, idleness, limits, cost)
        if found.saving_s[1] >= least:
            yield found


def _cost(recording: Recording, idleness: Idleness) -> float:
    """Seconds of the blocking account in runs that worked alone, as far as they did."""
    total, runs, waited_s = 0.0, recording.timeline.runs, _by_run(recording)
    for row in idleness.alone.tolist():
        took = max(1, int(runs["stop"][row] - runs["start"][row]))
        part = min(1.0, idleness.alone_ns[row] / took)
        total += part * waited_s.get(row, 0.0)
    if total:
        return total
    return cost_of(recording, steps=frozenset({STEP["wait.thread"]}))


def _by_run(recording: Recording) -> dict[int, float]:
    """Seconds of the blocking account in each run's function."""
    found: dict[int, float] = {}
    for step in recording.path_steps:
        if step.run >= 0 and step.what.step in _COMPUTE:
            found[step.run] = found.get(step.run, 0.0) + (step.stop - step.start) / 1e9
    return found


def explained(recording: Recording, idleness: Idleness) -> bool:
    """Whether a narrower cause explains most of it: stragglers, a loop, late workers."""
    alone = idleness.alone_ns
    slow = [s.slow for s in Skews(recording, 3, 4, 2).all]
    calls = Calls(recording)
    loops = [calls.rows(s.graphs) for s in calls.streaks if len(s.graphs) > 2]
    parts = [float(alone[rows].sum()) for rows in (*slow, *loops)]
    return max(parts, default=0.0) > alone.sum() / 2 or bool(idleness.crew.late)


def _few(recording: Recording, idleness: Idleness, limits: Limits, cost: float) -> Finding:
    row, rows = _main(recording, idleness)
    lack = why(recording, idleness.crew, row, rows)
    low, high = (
        recording.replay.saving(Change(compute=idleness.split(worth)))
        for worth in (limits["efficiency"], _GONE if lack.needless else 1.0)
    )
    saved = min(low[0], high[0]), max(low[1], high[1])
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{_who(idleness, idleness.want_s)} no task while others worked: too few tasks at "
            f"once, most of the time only {lack.seen} of `{row.prefix}`"
            f"{made_at(row.file, row.line)}, {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence=_evidence(idleness) | lack.evidence,
        cost_s=cost,
        saving_s=saved,
        fix=lack.fix,
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=f"few tasks:{row.layer}",
    )


def _elsewhere(recording: Recording, idleness: Idleness, cost: float) -> Finding:
    low, high = recording.replay.saving(Change(workers=len(idleness.crew.fullest)))
    # The replay knows no worker that a task has to be on: had none been idle, it is this at most.
    saved = low, max(high, idleness.misplaced_s / idleness.crew.threads)
    passed = passed_on(recording, idleness.crew)
    stood = line(recording, idleness.crew)
    row = stood.row
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{_who(idleness, idleness.misplaced_s)} no task while tasks stood in line "
            f"{stood.place}, most of the time `{row.prefix}`{made_at(row.file, row.line)}: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence=_evidence(idleness) | {"why": f"tasks in line {stood.place}", **passed},
        cost_s=cost,
        saving_s=saved,
        fix=fix(stood, passed),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause="tasks in line",
    )


def _who(idleness: Idleness, idle_s: float) -> str:
    """Which threads were idle, or, where none was for so long, how long all were in sum."""
    if not idleness.idle:
        return f"Threads had, for {seconds(idle_s)} in sum,"
    members = idleness.crew.members
    threads = sum(members[i].threads for i in idleness.idle)
    all_ = idleness.crew.threads
    return f"{threads} of {count(all_, 'thread')} had, for more than half of the time,"


def _evidence(idleness: Idleness) -> dict[str, float | int | str]:
    members = idleness.crew.members
    return {
        "threads": idleness.crew.threads,
        "threads_idle": sum(members[i].threads for i in idleness.idle),
        "idle_share": idleness.share,
        "idle_for_want_of_tasks_s": idleness.want_s,
        "idle_beside_waiting_tasks_s": idleness.misplaced_s,
    }


def _main(recording: Recording, idleness: Idleness) -> tuple[Row, Ints]:
    """The layer that was at work most while threads lacked tasks, and its runs."""
    groups, alone = recording.groups, idleness.alone
    sums = np.bincount(groups.of_run, weights=idleness.alone_ns, minlength=len(groups.rows))
    main = int(np.argmax(sums))
    return groups.rows[main], alone[groups.of_run[alone] == main]


RULE = Rule(
    id="idle-workers",
    stage=Stage.EXECUTION,
    summary="Threads have nothing to do while others work: too few tasks, or they wait elsewhere.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "share": Limit(0.05, "of the wall time, in cost and saving: less is not worth a change"),
        "misplaced": Limit(
            0.1, "of the threads' time, idle beside lines elsewhere: some is in every run"
        ),
        "wanting": Limit(
            0.1, "of the threads' time, idle for want of tasks: some is at the end of every run"
        ),
        "library": Limit(
            0.5, "of the threads' idle time: tasks whose libraries use as much are wide"
        ),
        "efficiency": Limit(0.5, "what a further thread does at least of one's work; half is lost"),
    },
)
