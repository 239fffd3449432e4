"""A program that sleeps between looks at its futures, and sleeps on when they are done."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.findings.asleep import Asleep, asleep
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: So much of what passes after the tasks are done is saved at least: a sleep may be for something
#: that takes a moment as well.
_SAVED: Final = 0.8
_NEVER: Final = np.iinfo(np.int64).max
_TEXT: Final = (
    "Wait for the futures instead of looking at them again and again: `wait`, `as_completed` and "
    "`client.gather` go on as soon as the last one is done, and cost nothing meanwhile. To report "
    "what is done so far, `as_completed` brings each as it comes. If you sleep for something else, "
    "such as a service that must not be asked too often, it is not for Dask's tasks."
)
_CODE: Final = """\
from distributed import wait

wait(futures)  # in place of the loop that sleeps; wait(futures, timeout=60): for 60 s at most"""


class _Round(NamedTuple):
    """What was handed over together: when, when all of it was done, and when it was asked for."""

    handed: int
    done: int
    asked: int


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all rounds in which the program slept at the same line, before and after."""
    region, least = recording.timeline.region, limits["share"] * recording.wall
    if _outside(recording, region.start, region.stop) < least:
        return
    rounds = _rounds(recording)
    outside = [(_outside(recording, r.handed, r.done), r) for r in rounds]
    late = [_outside(recording, r.done, r.asked) for meanwhile, r in outside if meanwhile > 0]
    if sum(late) < least:
        return
    slept = asleep(recording)
    if slept is not None and slept.part >= limits["asleep"]:
        yield _finding(recording, slept, len(late), sum(late))


def _outside(recording: Recording, start: int, stop: int) -> float:
    """Seconds outside of Dask between two instants."""
    return recording.walls.between(start, stop)[f"{Stage.OUTSIDE}_s"]


def _rounds(recording: Recording) -> list[_Round]:
    """What the region's thread handed over and asked for when it was done."""
    region = recording.timeline.region
    handed, done = _handed(recording)
    blocks = recording.walk.blocks.get((region.place, region.lane), [])
    asked = [block.start for block in blocks]
    before = np.searchsorted(handed, [0, *asked], side="right").tolist()
    found = []
    for (first, last), at in zip(pairwise(before), asked, strict=True):
        if first < last and done[last - 1] < at:
            begun = int(handed[last - 1])
            found.append(_Round(begun, max(begun, int(done[last - 1])), at))
    return found


def _handed(recording: Recording) -> tuple[Ints, Ints]:
    """When graphs were handed over, in order, and when these and all before them were done."""
    timeline = recording.timeline
    runs, owner, region = timeline.runs, timeline.graph_rows, timeline.region
    ended = np.where(runs["finished"] > 0, runs["finished"], _NEVER)
    done = np.zeros(len(timeline.graphs), np.int64)
    np.maximum.at(done, owner[owner >= 0], ended[owner >= 0])
    mine = [
        (graph.submitted, done[i])
        for i, graph in enumerate(timeline.graphs)
        if graph.submit and graph.submit.place == region.place
    ]
    times = np.array(sorted(mine), np.int64).reshape(-1, 2).T
    return times[0], np.maximum.accumulate(times[1])


def _finding(recording: Recording, slept: Asleep, rounds: int, late: float) -> Finding:
    saved = _SAVED * late, late
    times = f" in {count(rounds, 'round')}" if rounds > 1 else ""
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The program sleeps{made_at(slept.file, slept.line)} while tasks run, and "
            f"sleeps on when they are done: {of_wall(late, recording)}{times}"
        ),
        stage=None,
        evidence={
            "rounds": rounds,
            "late_each_s": late / rounds,
            "asleep_share": slept.part,
        },
        cost_s=late,
        saving_s=saved,
        fix=Fix(_TEXT, _CODE),
        where=Where(slept.file, slept.line),
        cause=f"polling:{slept.file}:{slept.line}",
    )


RULE = Rule(
    id="polling",
    stage=None,
    summary="The program sleeps between looks at its futures, and sleeps on when they are done.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.03, "of the wall time after tasks were done: less is not worth a change"),
        "asleep": Limit(0.5, "of the time outside of Dask at that line: else it does other things"),
    },
)
