"""Garbage collection that takes more than a share of a process's time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.collecting import rarely
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.standing import (
    Standing,
    in_runs,
    seconds_of,
    shared,
    stood,
    without,
)
from stageprof_collectors.replay.toll import toll

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Of what collections take, the thresholds of the printed code leave between nearly nothing and a
#: quarter: few collections come, but each goes through all that is there.
GONE: Final = (0.75, 1.0)
_TEXT: Final = (
    "Python's collector stops a process and goes through all its objects, again and again while "
    "many are made. Have it do so less often (the code below, once, before the work), or make "
    "fewer objects: NumPy arrays and Arrow tables hold millions of values as one object, which it "
    "need not go through. `gc.freeze()` takes what is there now out of its rounds."
)


class Most(NamedTuple):
    """What stood still: which part it plays, how many such processes, their share of the wall."""

    role: str
    processes: int
    share: float


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all processes: what they make is much the same."""
    told = stood(recording, "gc.pause_s")
    wall = recording.wall
    over = {p: s for p, s in told.items() if seconds_of(s) >= limits["share"] * wall}
    if not over:
        return
    pauses = shared(recording, over)
    most = without(recording, pauses, compute=True)
    cost = toll(recording, most)
    if cost < limits["path"] * wall:
        return
    least = without(recording, pauses, compute=True, part=GONE[0])
    replay = recording.replay
    high = replay.saving(most)[1]
    saved = min(replay.saving(least)[0], high), high
    yield _finding(recording, over, pauses, cost, saved)


def _finding(
    recording: Recording,
    over: Standing,
    pauses: Standing,
    cost: float,
    saved: tuple[float, float],
) -> Finding:
    found = _most(recording, over)
    row, during = _during(recording, pauses)
    total = sum(seconds_of(spans) for spans in over.values())
    most = f", most while `{row.prefix}`{made_at(row.file, row.line)} runs" if row.prefix else ""
    worst = max(over, key=lambda p: (_role(recording, p) == found.role, seconds_of(over[p])))
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"Garbage collection stops {count(found.processes, found.role)} for "
            f"{seconds(total)} (up to {share(found.share)} of the time){most}: "
            f"{of_wall(cost, recording)}"
        ),
        stage=None,
        evidence={
            "collecting_s": total,
            "processes": found.processes,
            "role": found.role,
            "share_of_process": found.share,
            "collecting_in_tasks_s": during,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, rarely(recording, worst)),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause="gc",
    )


def _role(recording: Recording, place: int) -> str:
    return recording.store.places[place].role


def _most(recording: Recording, over: Standing) -> Most:
    """The role that most of the pauses are of."""
    by_role: dict[str, list[float]] = {}
    for place, spans in over.items():
        by_role.setdefault(_role(recording, place), []).append(seconds_of(spans))
    role = max(by_role, key=lambda name: sum(by_role[name]))
    return Most(role, len(by_role[role]), max(by_role[role]) / recording.wall)


def _during(recording: Recording, pauses: Standing) -> tuple[Row, float]:
    """The layer during whose tasks most was collected, and how long that took in all tasks."""
    inside = in_runs(recording, pauses)
    groups = recording.groups
    total: dict[int, float] = {}
    for row, stopped in zip(groups.of_run.tolist(), inside.tolist(), strict=True):
        total[row] = total.get(row, 0.0) + stopped
    most = max(total, key=lambda row: total[row], default=0)
    return groups.rows[most if total.get(most) else 0], float(inside.sum())


RULE = Rule(
    id="gc-pressure",
    stage=None,
    summary="Garbage collection takes more than a share of a process's time.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.05, "of a process's time: a healthy one spends 1 or 2 % on collecting"),
        "path": Limit(0.02, "of the wall time on the critical path: less is not worth a change"),
    },
)
