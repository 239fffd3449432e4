"""Threads without work while others have some: too few tasks, or tasks that wait elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.calls import Calls
from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.crowd import is_piece
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.idleness import Idleness
from stageprof_collectors.findings.misplaced import fix, line, passed_on
from stageprof_collectors.findings.phrase import made_at, of_wall, word
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

_FEW: Final = (
    "Cut the data into at least {parts} pieces, two or more for each of {threads}. It is best to "
    "read or make them so; a single piece that is cut afterwards has to be made first. If the "
    "work cannot be cut, fewer workers take the same time."
)
_CHAINED: Final = (
    "Each of them needs the one before, so that one runs at a time, however many there are. What "
    "is written into one file is written so: let each partition have a file of its own. Elsewhere "
    "let the tasks give parts of the answer, and put these together at the end (in pairs, as "
    "reductions do). If the order is needed, fewer workers take the same time."
)
_ARRAY: Final = (
    "x = x.rechunk({{0: -(-x.shape[0] // {parts})}})  # better: chunks= where it is made"
)
_FRAME: Final = "ddf = ddf.repartition(npartitions={parts})  # better: as many when it is read"
#: What `to_csv` calls the tasks that write into a single file.
_ONE_FILE: Final = "write_csv"
_FILES: Final = """\
ddf.to_csv("parts/*.csv")  # a file for each partition; quicker to read: .to_parquet("parts/")"""
_CALLS: Final = """\
import dask

size = -(-len(items) // {parts})  # items: what one task worked on; {name}: the plain function
parts = [items[i : i + size] for i in range(0, len(items), size)]
results = dask.compute(*[dask.delayed({name})(part) for part in parts])"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for threads that lacked tasks, or one for tasks that were in the wrong place."""
    idleness = Idleness(recording)
    if not idleness:
        return
    misplaced = idleness.misplaced_s / idleness.crew.threads
    if not idleness.idle:
        if misplaced >= limits["misplaced"] * recording.wall:
            yield _elsewhere(recording, idleness, misplaced, _some(idleness))
        return
    elsewhere = idleness.misplaced_s > idleness.want_s
    cost = max(_cost(recording, idleness), misplaced if elsewhere else 0.0)
    if cost < limits["share"] * recording.wall:
        return
    if elsewhere:
        yield _elsewhere(recording, idleness, cost, _who(idleness))
    elif not Trainings(recording) and not explained(recording, idleness):
        found = _few(recording, idleness, limits, cost)
        if found.saving_s[1] >= limits["share"] * recording.wall:
            yield found


def _cost(recording: Recording, idleness: Idleness) -> float:
    """Seconds of the blocking account in runs that worked alone, as far as they did."""
    total = 0.0
    for row in idleness.alone.tolist():
        runs = recording.timeline.runs
        took = max(1, int(runs["stop"][row] - runs["start"][row]))
        part = min(1.0, idleness.alone_ns[row] / took)
        total += part * _by_run(recording).get(row, 0.0)
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
    low, high = (
        recording.replay.saving(Change(compute=idleness.split(worth)))
        for worth in (limits["efficiency"], 1.0)
    )
    saved = min(low[0], high[0]), max(low[1], high[1])
    row, rows = _main(recording, idleness)
    chained = _chained(recording, rows)
    threads = idleness.crew.threads
    parts = 2 * max(1, idleness.crew.useful)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{_who(idleness)} no task while others worked: too few tasks at once, most of the "
            f"time only {'one of ' if chained else ''}{count(len(rows), 'task')} of `{row.prefix}`"
            f"{made_at(row.file, row.line)}, {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence=_evidence(idleness) | _why(parts, chained=chained),
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_CHAINED, _FILES if row.prefix == _ONE_FILE else "")
        if chained
        else Fix(
            _FEW.format(parts=parts, threads=count(threads, "thread")),
            _code(recording, row, rows, parts),
        ),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=f"few tasks:{row.layer}",
    )


def _why(parts: int, *, chained: bool) -> dict[str, float | int | str]:
    if chained:
        return {"why": "one after another"}
    return {"why": "too few tasks", "pieces_advised": parts}


def _chained(recording: Recording, rows: Ints) -> bool:
    """Whether most of these tasks needed another of them."""
    needs = recording.timeline.depends
    both = np.isin(needs.user, rows) & np.isin(needs.on, rows)
    return len(rows) > 2 and 2 * len(np.unique(needs.user[both])) > len(rows)


def _elsewhere(recording: Recording, idleness: Idleness, cost: float, who: str) -> Finding:
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
            f"{who} no task while tasks stood in line on other workers, most of the time "
            f"`{row.prefix}`{made_at(row.file, row.line)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence=_evidence(idleness) | {"why": "tasks in line on other workers", **passed},
        cost_s=cost,
        saving_s=saved,
        fix=fix(stood, passed),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause="tasks in line",
    )


def _who(idleness: Idleness) -> str:
    members = idleness.crew.members
    threads = sum(members[i].threads for i in idleness.idle)
    all_ = idleness.crew.threads
    return f"{threads} of {count(all_, 'thread')} had, for more than half of the time,"


def _some(idleness: Idleness) -> str:
    """Where no thread was idle for so long."""
    return f"Threads had, for {seconds(idleness.misplaced_s)} in sum,"


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


def _code(recording: Recording, row: Row, rows: Ints, parts: int) -> str:
    runs, names = recording.timeline.runs, recording.store.strings
    types = names[int(runs["type"][rows[0]])] if len(rows) else ""
    keys = recording.store.keys(runs["key"][rows[:1]])
    if keys and keys[0].startswith("('"):
        return (_FRAME if is_piece(types) and "ndarray" not in types else _ARRAY).format(
            parts=parts
        )
    return _CALLS.format(parts=parts, name=word(row.prefix, "work"))


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
        "efficiency": Limit(0.5, "what a further thread does at least of one's work; half is lost"),
    },
)
