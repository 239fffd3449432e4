"""The total work: busy and waited time of every step, over all places."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pandas as pd

from stageprof_collectors.account.account import Account
from stageprof_collectors.account.attempts import worked
from stageprof_collectors.account.intervals import clip, gaps, innermost, length
from stageprof_collectors.account.lane import LOOP, SOFT, Lane, Lanes, What
from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline
from stageprof_collectors.account.underway import NAMELESS
from stageprof_runtime.event import EXCHANGE, SAMPLED
from stageprof_runtime.stage import STEP

_COMPUTE = STEP["compute"]
_RESOURCE = STEP["wait.resource"]
_TRANSFER = STEP["data.transfer"]
_DUMP, _LOAD = STEP["graph.dump"], STEP["graph.load"]


def count(account: Account, timeline: Timeline, lanes: Lanes, path: list[Step]) -> None:
    """Add busy and waited time, events and bytes to an account."""
    _spans(account, timeline, lanes)
    _sums(account, timeline)
    _graphs(account, timeline)
    _runs(account, timeline, lanes)
    _transfers(account, timeline, lanes)
    _sampled(account, timeline, lanes, path)
    _waits(account, timeline)
    _gil(account, timeline)


def _roles(timeline: Timeline) -> list[str]:
    return [place.role for place in timeline.store.places]


def _spans(account: Account, timeline: Timeline, lanes: Lanes) -> None:
    """Exact spans, exclusive by the lane that they are on; events and bytes of all."""
    roles = _roles(timeline)
    for place in range(len(roles)):
        for thread in lanes.threads(place):
            for start, stop, what in lanes.exact(place, thread):
                entry = account.entries[what.step, roles[place]]
                if what.step == _RESOURCE:
                    entry.waited += stop - start
                elif what.step != LOOP:
                    entry.busy += stop - start
            # A local scheduler's loop is not busy with what its tasks do on its own thread, nor
            # while it waits for those of others.
            for start, stop, what in lanes.around_loops(place, thread):
                if what.step == LOOP:
                    account.entries[LOOP, roles[place]].busy += stop - start
    spans = timeline.spans
    exact = spans["nbytes"] != SAMPLED
    code = spans["step"] * len(roles) + spans["place"]
    events = np.bincount(code[exact])
    nbytes = np.bincount(code[exact], weights=spans["nbytes"][exact])
    for i in np.flatnonzero(events).tolist():
        step, place = divmod(i, len(roles))
        entry = account.entries[step, roles[place]]
        entry.events += int(events[i])
        entry.nbytes += int(nbytes[i])


def _sums(account: Account, timeline: Timeline) -> None:
    """Spans that were too short to be kept one by one."""
    sums, roles = timeline.store.table("sum"), _roles(timeline)
    names = ("step", "place", "count", "total", "nbytes")
    for step, place, count_, total, nbytes in zip(*(sums[n].tolist() for n in names), strict=True):
        entry = account.entries[step, roles[place]]
        entry.busy += total
        entry.events += count_
        entry.nbytes += nbytes


def _graphs(account: Account, timeline: Timeline) -> None:
    """Bytes of graphs once: the message around each is dumped and loaded too, and holds them again.

    If a hand-over was not recorded, they stay as they were seen.
    """
    handed = [graph.submit for graph in timeline.graphs]
    known = [submit for submit in handed if submit is not None]
    if len(known) < len(handed):
        return
    roles, whole = _roles(timeline), Counter[tuple[int, str]]()
    for submit in known:
        whole[_DUMP, roles[submit.place]] += submit.nbytes
        whole[_LOAD, "scheduler"] += submit.nbytes
    for key, nbytes in whole.items():
        if nbytes > 0 and key in account.entries:
            account.entries[key].nbytes = nbytes


def _runs(account: Account, timeline: Timeline, lanes: Lanes) -> None:
    """Task functions, without what was recorded inside them on their thread."""
    runs = timeline.runs
    local, known = runs["run"] >= LOCAL, worked(runs)
    for mine, role in ((~local & known, "worker"), (local & known, "client")):
        if not mine.any():
            continue
        entry = account.entries[_COMPUTE, role]
        entry.busy += int((runs["stop"] - runs["start"])[mine].sum())
        entry.events += int(mine.sum())
        entry.nbytes += int(runs["nbytes"][mine].sum())
        entry.busy -= int(inside(timeline, lanes, mine).sum())
    _before(account, timeline)


def _before(account: Account, timeline: Timeline) -> None:
    """Of a cluster recorded from outside the tasks that ran already, as far as they were seen."""
    runs = timeline.runs
    nameless = (runs["worker"] == NAMELESS) & (runs["seen"] == 0) & (runs["finished"] > 0)
    mine = nameless & timeline.region.attached
    entry = account.entries[_COMPUTE, "worker"]
    entry.busy += int((runs["stop"] - runs["start"])[mine].sum())
    entry.busy += sum(stop - start for start, stop, _ in timeline.keyless)
    entry.events += int(mine.sum()) + len(timeline.keyless)


def inside(
    timeline: Timeline, lanes: Lanes, mine: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Ints:
    """For each run the length of what its thread did or waited for within it, exactly told, ns."""
    runs, exchanged = timeline.runs, _exchanged(timeline)
    total = np.zeros(len(runs["run"]), np.int64)
    for place in timeline.at.numbers:
        here = timeline.at.of(place)
        here = here[mine[here]]
        for thread in pd.unique(runs["thread"][here]).tolist():
            loops = lanes.around_loops(place, thread)
            lane = loops or lanes.of_thread(place, thread)
            if (place, thread) in exchanged:
                lane = innermost([*lane, *exchanged[place, thread]])
            if not lane:  # there may be many threads, and looking for the runs of each takes long
                continue
            rows = here[runs["thread"][here] == thread]
            start, stop = runs["start"][rows], runs["stop"][rows]
            if loops:
                total[rows] += stop - start - _own(loops, len(total))[rows]
            else:
                total[rows] += _overlap(start, stop, lane)
    return total


def _exchanged(timeline: Timeline) -> dict[tuple[int, int], Lane]:
    """When tasks waited for P2P exchanges, by place and thread."""
    blocks = timeline.read("block", "start", "stop")
    named = [i for i, text in enumerate(timeline.store.strings) if text == EXCHANGE]
    mine = np.isin(blocks["call"], named)
    columns = (blocks[name][mine].tolist() for name in ("place", "thread", "start", "stop"))
    found: defaultdict[tuple[int, int], Lane] = defaultdict(list)
    for place, thread, start, stop in zip(*columns, strict=True):
        found[place, thread].append((start, stop, What(_TRANSFER, place)))
    return found


def _own(lane: Lane, n: int) -> Ints:
    """For each run the length of what is its own of a thread that had a local scheduler's loop."""
    own = np.zeros(n, np.int64)
    for start, stop, what in lane:
        if what.step == _COMPUTE:
            own[what.label] += stop - start
    return own


def _overlap(starts: Ints, stops: Ints, lane: Lane) -> Ints:
    """For each of intervals that do not overlap the length of the segments that begin in it, ns."""
    total = np.zeros(len(starts), np.int64)
    if not len(starts) or not lane:
        return total
    order = np.argsort(starts, kind="stable")
    begin, end = np.array([segment[:2] for segment in lane], np.int64).T
    at = np.searchsorted(starts[order], begin, side="right") - 1
    which = order[np.maximum(at, 0)]
    within = (at >= 0) & (begin < stops[which])
    np.add.at(total, which[within], (np.minimum(end, stops[which]) - begin)[within])
    return total


def _transfers(account: Account, timeline: Timeline, lanes: Lanes) -> None:
    """Connections, and transfers without these and the loading at their receiver meanwhile.

    What is scattered to a worker, or comes by P2P, is loaded there without a transfer.
    """
    for place, role in enumerate(_roles(timeline)):
        connected = lanes.soft(place, STEP["connect"])
        within = innermost([*connected, *lanes.step([place], STEP["data.load"])])
        moved = lanes.soft(place, _TRANSFER)
        busy = sum(b - a - length(clip(within, a, b)) for a, b, _ in moved)
        account.entries[_TRANSFER, role].busy += busy
        account.entries[STEP["connect"], role].busy += length(connected)
        actors = length(lanes.soft(place, _COMPUTE))
        account.entries[_COMPUTE, role].busy += actors


def _sampled(account: Account, timeline: Timeline, lanes: Lanes, path: list[Step]) -> None:
    """What the sampler saw of the region's thread: as much as the path shows of it."""
    for step in shown(timeline, lanes, path):
        entry = account.entries[step.what.step, "client"]
        entry.busy += step.stop - step.start
        entry.events += 1


def shown(timeline: Timeline, lanes: Lanes, path: list[Step]) -> list[Step]:
    """The pieces of the path that only the sampler saw."""
    region = timeline.region
    exact = lanes.exact(region.place, region.thread)
    sampled = lanes.sampled(region.place, region.thread)
    codes = {what.step for _, _, what in sampled} - SOFT
    found = []
    for start, stop, what, run in path:
        if what.step not in codes or what.place != region.place or run >= 0:
            continue
        known = [s for s in clip(exact, start, stop) if s[2].step == what.step]
        for a, b in gaps(known, start, stop):
            seen = [s for s in clip(sampled, a, b) if s[2].step == what.step]
            found += [Step(x, y, what, -1) for x, y, what in seen]
    return found


def _waits(account: Account, timeline: Timeline) -> None:
    """What tasks waited: for the message that brings them, for a thread or a resource."""
    runs = timeline.runs
    cluster = (runs["run"] < LOCAL) & (runs["seen"] == 1)
    send = (runs["received"] - runs["assigned"])[cluster]
    begin = runs["start"] - runs["ready"]
    constrained = np.isin(np.arange(len(begin)), list(timeline.constrained))
    account.entries[STEP["task.send"], "scheduler"].waited += int(send.sum())
    for step, mine in ((STEP["wait.thread"], ~constrained), (_RESOURCE, constrained)):
        account.entries[step, "worker"].waited += int(begin[cluster & mine].sum())
    fetch = int((runs["ready"] - runs["received"])[cluster].sum())
    exchanged = sum(length(lane) for lane in _exchanged(timeline).values())
    account.entries[_TRANSFER, "worker"].waited += fetch + exchanged


def _gil(account: Account, timeline: Timeline) -> None:
    share = timeline.gil.shares
    if share is None:
        return
    runs = timeline.runs
    length_ = (runs["stop"] - runs["start"]).astype(float)
    account.entries[STEP["gil.wait"], "worker"].busy += int((share * length_).sum())
