"""The total work: busy and waited time of every step, over all places."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.account import INCLUDED, Entries, Entry, somewhere
from stageprof_collectors.account.attempts import worked
from stageprof_collectors.account.intervals import clip, common, gaps, innermost, length
from stageprof_collectors.account.lane import LOOP, SOFT, Lane, Lanes, What
from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline
from stageprof_collectors.account.underway import NAMELESS
from stageprof_runtime.event import EXCHANGE, SAMPLED
from stageprof_runtime.stage import STEP

#: Which of some runs.
Mine = NDArray[np.bool_] | slice
_ALL: Final = slice(None)

_COMPUTE = STEP["compute"]
_RESOURCE = STEP["wait.resource"]
_TRANSFER = STEP["data.transfer"]
_DUMP, _LOAD = STEP["graph.dump"], STEP["graph.load"]


def count(entries: Entries, timeline: Timeline, lanes: Lanes, path: list[Step]) -> None:
    """Add busy and waited time, events and bytes to entries by step and place."""
    _spans(entries, timeline, lanes)
    _sums(entries, timeline)
    _graphs(entries, timeline)
    workers = _Places(timeline.runs["wplace"], "worker")
    _runs(entries, timeline, lanes, workers)
    _transfers(entries, timeline, lanes)
    _sampled(entries, timeline, lanes, path)
    _waits(entries, timeline, workers)
    _gil(entries, timeline, workers)


class _Places:
    """Where each of some runs was; what they took is summed up by place.

    Args:
        places: of each run, by index; one that is not known is below 0.
        role: of the place that is not known.
    """

    def __init__(self, places: Ints, role: str) -> None:
        self._at = places + 1
        np.maximum(self._at, 0, out=self._at)
        self._names = [somewhere(role), *range(int(self._at.max(initial=0)))]

    def numbers(self, mine: Mine) -> Iterator[tuple[int, int]]:
        """Of each place that had some of the runs: its index, and how many."""
        return self._named(np.bincount(self._at[mine], minlength=len(self._names)))

    def sums(self, ns: Ints, mine: Mine) -> Iterator[tuple[int, int]]:
        """Of each place that had some of the runs: its index, and the sum of theirs."""
        totals = np.zeros(len(self._names), np.int64)
        np.add.at(totals, self._at[mine], ns)
        return self._named(totals)

    def _named(self, of_place: Ints) -> Iterator[tuple[int, int]]:
        return ((self._names[i], int(of_place[i])) for i in np.flatnonzero(of_place).tolist())


def _spans(entries: Entries, timeline: Timeline, lanes: Lanes) -> None:
    """Exact spans, exclusive by the lane that they are on; events and bytes of all."""
    places = len(timeline.store.places)
    for place in range(places):
        for thread in lanes.threads(place):
            for start, stop, what in lanes.exact(place, thread):
                entry = entries[what.step, place]
                if what.step == _RESOURCE:
                    entry.waited += stop - start
                elif what.step != LOOP:
                    entry.busy += stop - start
            # A local scheduler's loop is not busy with what its tasks do on its own thread, nor
            # while it waits for those of others.
            for start, stop, what in lanes.around_loops(place, thread):
                if what.step == LOOP:
                    entries[LOOP, place].busy += stop - start
    spans = timeline.spans
    exact = spans["nbytes"] != SAMPLED
    code = spans["step"] * places + spans["place"]
    events = np.bincount(code[exact])
    nbytes = np.bincount(code[exact], weights=spans["nbytes"][exact])
    for i in np.flatnonzero(events).tolist():
        entry = entries[divmod(i, places)]
        entry.events += int(events[i])
        entry.nbytes += int(nbytes[i])


def _sums(entries: Entries, timeline: Timeline) -> None:
    """Spans that were too short to be kept one by one."""
    sums, places = timeline.store.table("sum"), len(timeline.store.places)
    whose, at = np.unique(sums["step"] * places + sums["place"], return_inverse=True)
    columns = []
    for name in ("total", "count", "nbytes"):
        total = np.zeros(len(whose), np.int64)
        np.add.at(total, at, sums[name])
        columns.append(total.tolist())
    for code, busy, events, nbytes in zip(whose.tolist(), *columns, strict=True):
        entries[divmod(code, places)].add(Entry(busy=busy, events=events, nbytes=nbytes))


def _graphs(entries: Entries, timeline: Timeline) -> None:
    """Bytes of graphs once: the message around each is dumped and loaded too, and holds them again.

    If a hand-over was not recorded, they stay as they were seen.
    """
    whole = Counter[tuple[int, int]]()
    for graph in timeline.graphs:
        if graph.submit is None:
            return
        whole[_DUMP, graph.submit.place] += graph.submit.nbytes
        whole[_LOAD, graph.place] += graph.submit.nbytes
    roles = [place.role for place in timeline.store.places]
    for (step, place), nbytes in whole.items():
        right = step == _DUMP or roles[place] == "scheduler"
        if right and nbytes > 0 and (step, place) in entries:
            entries[step, place].nbytes = nbytes


def _runs(entries: Entries, timeline: Timeline, lanes: Lanes, workers: _Places) -> None:
    """Task functions, without what was recorded inside them on their thread."""
    runs = timeline.runs
    known = worked(runs)
    own = runs["stop"] - runs["start"]
    own -= inside(timeline, lanes, known)
    mine = _mine(known)
    for place, number in workers.numbers(mine):
        entries[_COMPUTE, place].events += number
    for place, ns in workers.sums(own[mine], mine):
        entries[_COMPUTE, place].busy += ns
    for place, total in workers.sums(runs["nbytes"][mine], mine):
        entries[_COMPUTE, place].nbytes += total
    _before(entries, timeline)


def _before(entries: Entries, timeline: Timeline) -> None:
    """Of a cluster recorded from outside the tasks that ran already, as far as they were seen."""
    if not timeline.region.attached:
        return
    runs = timeline.runs
    mine = (runs["worker"] == NAMELESS) & (runs["seen"] == 0) & (runs["finished"] > 0)
    entry = entries[_COMPUTE, somewhere("worker")]
    entry.busy += int((runs["stop"] - runs["start"])[mine].sum())
    entry.busy += sum(stop - start for start, stop, _ in timeline.keyless)
    entry.events += int(mine.sum()) + len(timeline.keyless)


def inside(timeline: Timeline, lanes: Lanes, mine: NDArray[np.bool_]) -> Ints:
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


def _transfers(entries: Entries, timeline: Timeline, lanes: Lanes) -> None:
    """Connections, and transfers without these and the loading at their receiver meanwhile.

    What is scattered to a worker, or comes by P2P, is loaded there without a transfer.
    """
    for place in range(len(timeline.store.places)):
        connected = lanes.soft(place, STEP["connect"])
        within = innermost([*connected, *lanes.step([place], STEP["data.load"])])
        moved = lanes.soft(place, _TRANSFER)
        entries[_TRANSFER, place].busy += length(moved) - common(moved, within)
        entries[STEP["connect"], place].busy += length(connected)
        actors = length(lanes.soft(place, _COMPUTE))
        entries[_COMPUTE, place].busy += actors


def _sampled(entries: Entries, timeline: Timeline, lanes: Lanes, path: list[Step]) -> None:
    """What the sampler saw of the region's thread: as much as the path shows of it."""
    for step in shown(timeline, lanes, path):
        entries[step.what.step, step.what.place].add(Entry(busy=step.stop - step.start, events=1))


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


def _waits(entries: Entries, timeline: Timeline, workers: _Places) -> None:
    """What tasks waited: for the message that brings them, for a thread or a resource."""
    runs = timeline.runs
    mine = _mine((runs["run"] < LOCAL) & (runs["seen"] == 1))
    assigned, received, ready, start = (
        runs[name][mine] for name in ("assigned", "received", "ready", "start")
    )
    schedulers = _Places(runs["place"], "scheduler")
    _wait(entries, STEP["task.send"], schedulers.sums(received - assigned, mine))
    _wait(entries, _TRANSFER, workers.sums(ready - received, mine))
    for (at, _), lane in _exchanged(timeline).items():
        entries[_TRANSFER, at].waited += length(lane)
    begin = start - ready
    if timeline.constrained:
        number = np.arange(len(runs["run"]))[mine]
        within = begin * np.isin(number, list(timeline.constrained))
        _wait(entries, _RESOURCE, workers.sums(within, mine))
        begin = begin - within
    _wait(entries, STEP["wait.thread"], workers.sums(begin, mine))


def _mine(rows: NDArray[np.bool_]) -> Mine:
    """The same rows; what is chosen by a slice is not copied."""
    return _ALL if rows.all() else rows


def _wait(entries: Entries, step: int, sums: Iterable[tuple[int, int]]) -> None:
    for place, total in sums:
        entries[step, place].waited += total


def _gil(entries: Entries, timeline: Timeline, workers: _Places) -> None:
    share = timeline.gil.shares
    if share is None:
        return
    runs = timeline.runs
    waited = np.rint(share * (runs["stop"] - runs["start"])).astype(np.int64)
    for place, total in workers.sums(waited, _ALL):
        entries[INCLUDED, place].busy += total
