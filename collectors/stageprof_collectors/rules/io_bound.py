"""Tasks that wait for something outside, while threads are few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.hotspot import LEAST, MOSTLY, needless
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.training import Trainings
from stageprof_collectors.findings.waiters import (
    ASKING,
    THREADS,
    Rows,
    Waiters,
    had_of,
    length,
    occupied,
    saving,
    waiters,
)
from stageprof_collectors.profiles.looks import Looks
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.rules.read_bandwidth import READS, brought
from stageprof_collectors.rules.read_bandwidth import RULE as READ_BANDWIDTH
from stageprof_runtime.stack import LIBRARY
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = frozenset({STEP["compute"]})
#: Bytes of a read, of which the bytes may take the time and not the answer.
_LARGE: Final = READ_BANDWIDTH.limits["bytes"].default
#: Dask's own tasks that wait for their like on other workers.
_OWN: Final = ("shuffle", "p2p", "rechunk", "hash-join", "barrier")

_TEXT: Final = (
    "These tasks wait (for a service, a database, storage), and each holds a thread meanwhile. Let "
    "more of them wait at once: give each worker about {threads} threads (the code below, in place "
    "of your own cluster), or ask for many things at once in one task (a batch request, asyncio). "
    "How many at a time is what they ask's to say. If they wait for one another (a lock of "
    "`threading`, a file), more threads change nothing."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each layer at a line whose tasks wait."""
    if Trainings(recording):
        return
    had = had_of(recording, ASKING)
    groups, waits = recording.groups, _waiting(recording, had, limits)
    for row in np.unique(groups.of_run[waits]).tolist():
        rows = np.flatnonzero(groups.of_run == row)
        if not row or len(rows) < limits["tasks"] or _others(recording, groups.rows[row], rows):
            continue
        if waits[rows].mean() >= limits["most"] and (not had or _calls(recording, rows)):
            yield from _found(recording, groups.rows[row], rows, limits)


def _waiting(recording: Recording, had: Mapping[int, float], limits: Limits) -> NDArray[np.bool_]:
    """Runs that neither computed nor waited for Dask: for the GIL, a lock of its, other tasks.

    What computes where other programs leave hardly a processor takes all that it can have (`had`,
    by place).
    """
    runs = recording.timeline.runs
    took = np.maximum(runs["stop"] - runs["start"], 1)
    waits: NDArray[np.bool_] = (runs["seen"] == 1) & (took > limits["least_s"] * 1e9)
    could = [had.get(place, 1.0) for place in range(len(recording.store.places))]
    waits &= runs["cpu"] < limits["cpu"] * np.array([*could, 1.0])[runs["wplace"]] * took
    if not waits.any():  # what else they did is found out for all runs, and takes long
        return waits
    waits &= occupied(recording) < limits["cpu"]
    return waits


def _calls(recording: Recording, rows: Rows) -> bool:
    """Whether such tasks were seen in calls that gave up the GIL, and hardly in Python."""
    prefix = recording.prefixes[int(rows[0])]
    looks = [look for look in Looks(recording).all if look.prefix == prefix]
    seen = sum(look.seconds for look in looks)
    without = sum(look.seconds for look in looks if look.how == LIBRARY)
    return sum(look.count for look in looks) >= LEAST and without >= MOSTLY * seen


def _others(recording: Recording, row: Row, rows: Rows) -> bool:
    """Whether such tasks read so much that they may wait for its bytes, or are Dask's own."""
    if row.prefix.startswith(_OWN):
        return True
    needs = recording.timeline.depends
    leaf = needs.first[rows] == needs.first[rows + 1]
    if not (READS.search(row.prefix) and leaf.all()):
        return False
    nbytes = brought(recording)[rows]  # where they were not weighed they may be anything
    return bool(np.isnan(nbytes).all() or np.nanmedian(nbytes) >= _LARGE)


def _found(recording: Recording, row: Row, rows: Rows, limits: Limits) -> Iterator[Finding]:
    who = waiters(recording, rows)
    if who.each >= THREADS:
        return
    cost = cost_of(recording, steps=_COMPUTE, runs=rows.tolist())
    threads, high = _enough(recording, who, len(rows), cost)
    saved = 0.0, high
    if min(cost, saved[1]) < limits["share"] * recording.wall:
        return
    took = length(recording, rows)
    part = float(recording.timeline.runs["cpu"][rows].sum() / 1e9 / took.sum())
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(len(rows), 'task')} of `{row.prefix}`{made_at(row.file, row.line)} wait "
            f"for {seconds(float(np.median(took)))} each and compute in {share(part)} of it: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "tasks": len(rows),
            "cpu_share": part,
            "threads": who.each,
            "threads_asked_for": threads,
            **_where(recording, row.prefix),
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT.format(threads=threads) + needless(recording, row.prefix), who.code(threads)),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=f"layer:{row.prefix}",
    )


def _enough(recording: Recording, who: Waiters, tasks: int, cost: float) -> tuple[int, float]:
    """How many threads of each save most, and what they save at most, s.

    All that may wait at once; fewer where a loop that has hardly a processor cannot serve them.
    """
    most = who.more(tasks)
    numbers = takewhile(lambda n: n >= 2 * who.each, (most >> i for i in range(most)))
    saved = {n: saving(recording, who, n, cost)[1] for n in numbers}
    best = max(saved, key=lambda n: saved[n])
    return best, saved[best]


def _where(recording: Recording, prefix: str) -> dict[str, str]:
    """The user's line in which most of them were seen."""
    looks = [look for look in Looks(recording).all if look.prefix == prefix and look.line]
    if not looks:
        return {}
    most = max(looks, key=lambda look: look.seconds)
    return {"seen_in": f"{most.function}{made_at(most.file, most.line)}"}


RULE = Rule(
    id="io-bound",
    stage=Stage.EXECUTION,
    summary="Tasks wait for something outside, and threads are few.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "tasks": Limit(8, "fewer are no pattern"),
        "cpu": Limit(0.2, "of a task's time: a thread that computes more is not waiting"),
        "most": Limit(0.8, "of the tasks of a line: where fewer wait, it is not what they do"),
        "least_s": Limit(0.005, "of a task: what Dask needs for one outweighs shorter ones"),
        "share": Limit(0.05, "of the wall time, in cost and saving: less is not worth a change"),
    },
)
