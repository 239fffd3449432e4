"""The busy seconds of every step by row of the table of layers; they sum to the account's.

What can be told apart is given to its rows piece by piece; the rest of a step (spans that were too
short to be kept, what surrounds tasks in a message) goes the way of what is known of it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.account import INCLUDED
from stageprof_collectors.account.attempts import worked
from stageprof_collectors.account.blame import CARRIED, Blame, Piece
from stageprof_collectors.account.groups import NOBODY, Parts
from stageprof_collectors.account.intervals import Segment
from stageprof_collectors.account.lane import Lane, What
from stageprof_collectors.account.tally import Tally
from stageprof_collectors.account.timeline import Ints, Timeline, present
from stageprof_collectors.account.work import inside, shown
from stageprof_collectors.storage.rows import Rows
from stageprof_runtime.stage import IMPORT, SIX, STEP, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = STEP["compute"]
#: A worker sends data to those who fetch them.
_SERVING: Final = STEP["data.dump"]
_ALL: Final = slice(None)
_FETCHING: Final = (STEP["data.transfer"], STEP["connect"])
_TRANSITION: Final = STEP["transition"]
_IMPORTS: Final = frozenset(IMPORT.values())
#: Rounds of transitions for a task to be assigned, or to end, at most; the rest let tasks go.
_ROUNDS: Final = 2
#: Which instant of a run says that a short span of a step may have been for it.
_WHEN: Final = {
    STEP["transition"]: "assigned",
    STEP["spill.write"]: "finished",
    STEP["spill.read"]: "ready",
    STEP["task.dump"]: "assigned",
    STEP["task.load"]: "received",
    STEP["data.dump"]: "ready",
    STEP["data.load"]: "ready",
    STEP["result.dump"]: "finished",
    STEP["result.load"]: "finished",
}

Tallies = defaultdict[int, Tally]


def busy(recording: Recording, blame: Blame) -> dict[int, dict[int, float]]:
    """For each step code of the six stages its busy ns by row."""
    timeline = recording.timeline
    tallies: Tallies = defaultdict(Tally)
    _spans(tallies, recording, blame)
    _runs(tallies, recording, blame)
    _transfers(tallies, recording, blame)
    for piece in shown(timeline, recording.lanes, recording.path_steps):
        _give(tallies, blame, (piece.start, piece.stop, piece.what), -1)
    for step in CARRIED:
        for row, ns in blame.carried.ns.get(step, {}).items():
            tallies[step].rows[row] += ns
    _sums(tallies, timeline, blame)
    totals: defaultdict[int, int] = defaultdict(int)
    for (step, _), entry in recording.account.entries.items():
        if step != INCLUDED and stage_of(step) in SIX:
            totals[step] += entry.busy
    return {
        step: _scaled(total, _rest(step, total, tallies[step].settled(blame), blame))
        for step, total in totals.items()
        if total
    }


def _rest(step: int, total: int, rows: dict[int, float], blame: Blame) -> dict[int, float]:
    """What surrounds tasks in messages is shared over them by their number."""
    counts: Parts = blame.carried.count.get(step, {})
    left = total - sum(rows.values())
    number = sum(counts.values())
    if step not in CARRIED or left <= 0 or not number:
        return rows
    return {
        row: rows.get(row, 0.0) + left * counts.get(row, 0.0) / number for row in {*rows, *counts}
    }


def _scaled(total: int, rows: dict[int, float]) -> dict[int, float]:
    """The same proportions with this sum; nobody's where nothing is known."""
    known = sum(rows.values())
    if known <= 0:
        return {NOBODY: float(total)}
    return {row: ns * total / known for row, ns in rows.items()}


def _spans(tallies: Tallies, recording: Recording, blame: Blame) -> None:
    """Exact spans, exclusive by the thread that they are on."""
    lanes = recording.lanes
    for place in range(len(recording.store.places)):
        for thread in lanes.threads(place):
            lane = lanes.exact(place, thread)
            runs = lanes.around(place, thread, lane)
            beside = _beside(recording, place, thread)
            for (start, stop, what), run in zip(lane, runs, strict=True):
                if beside and what.step in _IMPORTS:
                    tallies[what.step].rows[NOBODY] += stop - start
                elif what.step not in blame.told:
                    _give(tallies, blame, (start, stop, what), run)
        for segment in lanes.soft(place, _COMPUTE):
            _give(tallies, blame, segment, -1)


def _beside(recording: Recording, place: int, thread: int) -> bool:
    """Whether it is a client's event loop, and not its caller: what starts there is a cluster."""
    mine, region = recording.store.places[place].role == "client", recording.timeline.region
    return mine and thread != region.thread and recording.lanes.is_loop(place, thread)


def _give(tallies: Tallies, blame: Blame, segment: Segment[What], run: int) -> None:
    start, stop, (step, place, label) = segment
    blame.give(tallies[step], Piece(step, place, start, stop, label, run))


def _runs(tallies: Tallies, recording: Recording, blame: Blame) -> None:
    """Task functions, without what was recorded inside them on their thread."""
    runs = recording.timeline.runs
    known = worked(runs)
    own = runs["stop"] - runs["start"] - inside(recording.timeline, recording.lanes, known)
    _add(tallies[_COMPUTE], blame.owners.of_run[known], own[known].astype(float))


def _transfers(tallies: Tallies, recording: Recording, blame: Blame) -> None:
    """Transfers belong to the tasks that waited for dependencies meanwhile: they fetched."""
    runs, lanes = recording.timeline.runs, recording.lanes
    for step in _FETCHING:
        for place in range(len(recording.store.places)):
            moved = lanes.soft(place, step)
            mine = recording.timeline.at.of(place)
            mine = mine[runs["ready"][mine] > runs["received"][mine]]
            if moved and len(mine):
                ready, received = (_covered(moved, runs[n][mine]) for n in ("ready", "received"))
                _add(tallies[step], blame.owners.of_run[mine], ready - received)
            else:
                for segment in moved:
                    _give(tallies, blame, segment, -1)


def _covered(lane: Lane, t: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How many ns of ordered, disjoint segments lie before each instant."""
    ends = np.array([segment[:2] for segment in lane], np.int64).ravel()
    before = np.cumsum(np.tile([0, 1], len(lane)) * np.diff(ends, prepend=ends[:1]))
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = np.interp(
        (t - ends[0]).astype(float), (ends - ends[0]).astype(float), before.astype(float)
    )
    return found


def _sums(tallies: Tallies, timeline: Timeline, blame: Blame) -> None:
    """Short spans: for the runs that a step may have been for between two sums."""
    sums = timeline.read("sum", "t")
    order = np.argsort(sums["t"], kind="stable")
    for step in present(sums["step"]):
        if step in blame.told or step == _COMPUTE or step in _FETCHING:
            continue
        rows = order[sums["step"][order] == step]
        ends, totals = sums["t"][rows], sums["total"][rows]
        if step == _SERVING:  # for runs elsewhere, wherever that was
            _spread(tallies[step], step, ends, totals, timeline, blame, _ALL)
            continue
        told = Rows(sums["place"][rows])
        for place in told.numbers:
            at, worker = told.of(place), timeline.store.places[place].role == "worker"
            runs = timeline.at.of(place) if worker else _ALL
            own = totals[at]
            if step == _TRANSITION:
                gone = _let_go(ends[at], own, sums["count"][rows][at], timeline)
                tallies[step].share(float(gone.sum()), _each(blame.owners.of_run))
                own = own - gone
            _spread(tallies[step], step, ends[at], own, timeline, blame, runs)


def _let_go(ends: Ints, totals: Ints, counts: Ints, timeline: Timeline) -> Ints:
    """Of each sum of transitions what is for tasks whose results nobody wants any more.

    They are let go when a program ends, or drops a collection, whatever runs meanwhile.
    """
    moves = np.zeros(len(ends) + 1, np.int64)
    for name in ("assigned", "finished"):
        when = timeline.runs[name]
        window = np.searchsorted(ends, when[when > 0], side="left")
        moves += np.bincount(window, minlength=len(ends) + 1)
    beyond = np.maximum(counts - _ROUNDS * moves[:-1], 0)
    gone: Ints = np.rint(totals * (beyond / np.maximum(counts, 1))).astype(np.int64)
    return gone


def _each(rows: Ints) -> Parts:
    """Every task as much as any other."""
    counts = np.bincount(rows)
    return {int(row): float(counts[row]) for row in np.flatnonzero(counts)}


def _spread(
    tally: Tally,
    step: int,
    ends: Ints,
    totals: Ints,
    timeline: Timeline,
    blame: Blame,
    runs: Ints | slice,
) -> None:
    """Give each total to those of some runs that were in the half second that ended with it."""
    name = _WHEN.get(step)
    when = (timeline.runs[name] if name else blame.graphs.start_of_run)[runs]
    window = np.searchsorted(ends, when, side="left")
    inside_ = window < len(ends)
    if not inside_.any():
        tally.rows[NOBODY] += float(totals.sum())
        return
    counts = np.bincount(window[inside_], minlength=len(ends))
    # A sum without runs is for those that came next: a graph that was just taken in.
    with_runs = np.flatnonzero(counts)
    whose = with_runs[
        np.minimum(np.searchsorted(with_runs, np.arange(len(ends))), len(with_runs) - 1)
    ]
    sums = np.bincount(whose, weights=totals, minlength=len(ends))
    each = sums / np.maximum(counts, 1)
    _add(tally, blame.owners.of_run[runs][inside_], each[window[inside_]])


def _add(tally: Tally, rows: Ints, ns: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Add a column of ns by a column of rows."""
    sums = np.bincount(rows, weights=ns)
    for row in np.flatnonzero(sums).tolist():
        tally.rows[row] += float(sums[row])
