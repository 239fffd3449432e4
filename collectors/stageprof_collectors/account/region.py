"""The region's own time line: each instant of it labelled, blocking calls resolved.

What goes before what: an optimization and all that it runs; blocking calls, by the walk; exact
spans on the region's thread; tasks that ran on it (the synchronous scheduler); what the sampler
saw; and the rest is the user's own code.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise

import numpy as np

from stageprof_collectors.account.block import STILL, Block
from stageprof_collectors.account.intervals import Segment, clip, innermost, paint
from stageprof_collectors.account.lane import Lane, Lanes, What
from stageprof_collectors.account.path import Step, Walk
from stageprof_collectors.account.timeline import LOCAL, Timeline
from stageprof_collectors.account.underway import running
from stageprof_runtime.stage import IMPORT, OUTSIDE, STEP, Stage

_EXPR = STEP["expr"]
_OPTIMIZATION = frozenset({_EXPR, IMPORT[Stage.OPTIMIZATION]})


def critical_path(timeline: Timeline, lanes: Lanes, walk: Walk) -> list[Step]:
    """The segments of the blocking account in order; they cover the region without a gap."""
    region = timeline.region
    own = [] if region.attached else _own(timeline, lanes)
    waited = [
        (s.start, s.stop, s)
        for block in waits(timeline, lanes, walk)
        for s in walk.resolve(block, block.start, block.stop)
    ]
    first, *rest = own or [[]]
    outside = Step(region.start, region.stop, What(OUTSIDE, region.place), -1)
    painted = paint(region.start, region.stop, [first, waited, *rest], outside)
    return [Step(start, stop, step.what, step.run) for start, stop, step in painted]


def waits(timeline: Timeline, lanes: Lanes, walk: Walk) -> list[Block]:
    """The region's own blocking calls in order, without what of them lies within another.

    Those within an optimization are left out: they are a part of it.
    """
    region = timeline.region
    if region.attached:
        blocks, covered = _computations(timeline), []
    else:
        blocks = walk.waits((region.place, region.lane))
        covered = _optimizing(timeline, lanes)
    out: list[Block] = []
    now = 0
    for block in blocks:
        start = max(block.start, now)
        if start >= block.stop or clip(covered, start, start + 1):
            continue
        out.append(block._replace(start=start))
        now = block.stop
    return out


def _own(timeline: Timeline, lanes: Lanes) -> list[list[Segment[Step]]]:
    """Optimizations; other exact spans and tasks; what the sampler saw."""
    place, thread = timeline.region.place, timeline.region.thread
    spans = _steps(lanes.spans(place, thread)) + _tasks_here(timeline)
    sampled = _steps(lanes.sampled(place, thread))
    return [_steps(_optimizing(timeline, lanes)), innermost(spans), sampled]


def _steps(lane: Lane) -> list[Segment[Step]]:
    """The same as steps that are of no run."""
    return [(start, stop, Step(start, stop, what, -1)) for start, stop, what in lane]


def _optimizing(timeline: Timeline, lanes: Lanes) -> Lane:
    place, thread = timeline.region.place, timeline.region.thread
    whole = lanes.whole(place, thread, _EXPR)
    imports = [s for s in lanes.exact(place, thread) if s[2].step in _OPTIMIZATION - {_EXPR}]
    return innermost([*whole, *imports])


def _tasks_here(timeline: Timeline) -> list[Segment[Step]]:
    """Runs on the region's own thread."""
    runs, region = timeline.runs, timeline.region
    mine = np.flatnonzero((runs["thread"] == region.thread) & (runs["wplace"] == region.place))
    what = What(STEP["compute"], region.place)
    starts, stops = runs["start"][mine].tolist(), runs["stop"][mine].tolist()
    rows = zip(starts, stops, mine.tolist(), strict=True)
    return [(start, stop, Step(start, stop, what, run)) for start, stop, run in rows]


def _computations(timeline: Timeline) -> list[Block]:
    """Of a cluster recorded from outside: from each graph's arrival to its last wanted result.

    What was under way when the recording began counts from there on; where nobody wants results,
    to the end of its last task. What is under way when it ends, or as another graph arrives,
    counts until then.
    """
    stop, ends = timeline.region.stop, _ends(timeline)
    starts = _starts(timeline, ends)
    begun, reach = _reach(timeline)
    blocks = []
    for start, until in pairwise([*starts, stop]):
        before = bisect_left(begun, until) - 1
        if until == stop and _goes_on(timeline, start):
            blocks.append(_computation(timeline, start, until, STILL))
        elif until < stop and before >= 0 and reach[before] > until:
            blocks.append(_computation(timeline, start, until, until)._replace(given_up=True))
        else:
            last = _ended_in(ends, start, until) or until
            blocks.append(_computation(timeline, start, last, last))
    return blocks


def _computation(timeline: Timeline, start: int, stop: int, awaited: int) -> Block:
    region = timeline.region
    call = "under way" if start == region.start else "attached"
    return Block(start, stop, region.place, 0, call, awaited, 0, 0, "")


def _starts(timeline: Timeline, ends: list[list[int]]) -> list[int]:
    """When graphs arrived, in order; before them the recording's beginning, if tasks ran then."""
    region, graphs = timeline.region, timeline.read("graph", "start")
    starts: list[int] = sorted(graphs["start"][graphs["graph"] < LOCAL].tolist())
    first = starts[0] if starts else region.stop
    ran = _ended_in(ends, region.start, first) or (not starts and running(timeline.runs) >= 0)
    return [region.start, *starts] if ran else starts


def _goes_on(timeline: Timeline, start: int) -> bool:
    """Whether a task assigned since then had not ended when the recording did."""
    run = running(timeline.runs)
    return run >= 0 and int(timeline.runs["assigned"][run]) >= start


def _ends(timeline: Timeline) -> list[list[int]]:
    """When results were there that somebody wanted; when tasks ended; each in order."""
    runs, wants = timeline.runs, timeline.read("want", "t")
    ended = runs["finished"][(runs["finished"] > 0) & (runs["run"] < LOCAL)].tolist()
    keyless = [stop for _, stop, _ in timeline.keyless]
    return [sorted(wants["t"].tolist()), sorted([*ended, *keyless])]


def _reach(timeline: Timeline) -> tuple[list[int], list[int]]:
    """When what clusters do began, in order, and until when the last of all up to each lasts.

    A task does from its assignment, a graph from its arrival to the last of its wanted results.
    """
    runs, table = timeline.runs, timeline.read("want", "t")
    lasting = np.where(runs["seen"] == 1, runs["stop"], timeline.region.stop)
    ended = np.where(runs["finished"] > 0, runs["finished"], lasting)
    row = timeline.runs_of(table["run"], table["place"])
    graph = np.where(row >= 0, timeline.graph_rows[row], -1) if len(runs["run"]) else row
    arrived = np.array([g.arrived for g in timeline.graphs], np.int64)
    mine, known = runs["run"] < LOCAL, graph >= 0
    begun = np.concatenate([runs["assigned"][mine], arrived[graph[known]]])
    order = np.argsort(begun, kind="stable")
    until = np.concatenate([ended[mine], table["t"][known]])[order]
    return begun[order].tolist(), np.maximum.accumulate(until).tolist()


def _ended_in(ends: list[list[int]], start: int, until: int) -> int:
    """The last of the ends in [start, until], of results before that of tasks; 0 if none is."""
    for times in ends:
        last = bisect_right(times, until) - 1
        if last >= 0 and times[last] >= start:
            return times[last]
    return 0
