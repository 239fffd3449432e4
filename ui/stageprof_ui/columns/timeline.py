"""What every process and thread did, as rows of boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.intervals import innermost
from stageprof_collectors.account.lane import Lane
from stageprof_collectors.account.timeline import Ints, Timeline, present
from stageprof_collectors.account.union import union
from stageprof_collectors.findings.innocence import gil_seen
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import LIMIT, safe
from stageprof_runtime.stage import STEP
from stageprof_ui.columns.boxes import Boxes, Pile, Row, levels
from stageprof_ui.columns.lines import THREAD
from stageprof_ui.columns.series import numbered, worker_label

_COMPUTE: Final = STEP["compute"]
_TRANSFER: Final = STEP["data.transfer"]
_SPILL: Final = (STEP["spill.write"], STEP["spill.read"])
_WAIT: Final = STEP["wait.thread"]

#: What the rounding of clocks overlaps is no overlap, ns.
_CLOCKS_NS: Final = 1_000
#: More layers than a byte pair can number are one.
MOST_LAYERS: Final = 2**16 - 1


def boxes(recording: Recording) -> Boxes:
    """All boxes of a recording: the path, the client, the scheduler, and each worker's."""
    region, tables = recording.timeline.region, (recording.timeline.runs, recording.timeline.spans)
    ends = (int(table["stop"].max(initial=0)) for table in tables)
    pile = Pile(region.start, max(region.stop, *ends))
    roles = [place.role for place in recording.store.places]
    _path(pile, recording)
    for role in ("client", "scheduler"):
        for place in (i for i, r in enumerate(roles) if r == role):
            _process(pile, recording, place, role)
    groups = recording.groups
    layer, gil = np.minimum(groups.of_run, MOST_LAYERS), _tenths(recording)
    runs, spans = (by_place(recording.timeline, name) for name in ("runs", "spans"))
    called = labels(recording)
    for place in _working(recording):
        _worker(pile, recording, (place, called[place]), runs(place), layer, gil)
        _others(pile, recording, (place, called[place]), runs(place), spans(place))
    _unseen(pile, recording, layer)
    return pile.boxes([row.layer for row in groups.rows[: MOST_LAYERS + 1]])


# -- rows -----------------------------------------------------------------------------------------


def _path(pile: Pile, recording: Recording) -> None:
    """The critical path as a row of its own, and where it ran: a row for each role."""
    steps = recording.path_steps
    columns = [(s.start, s.stop, s.what.step, s.what.place, s.run) for s in steps]
    start, stop, step, place, run = np.array(columns or [(0,) * 5][:0], np.int64).reshape(-1, 5).T
    pile.add(Row("critical path", -1, "path"), start, stop, step, run=run)
    roles = np.array([p.role for p in recording.store.places] or [""])
    role = roles[np.clip(place, 0, len(roles) - 1)]
    for name in ("client", "scheduler", "worker"):
        mine = role == name
        pile.add(Row(name, -1, "path here"), start[mine], stop[mine], step[mine], run=run[mine])


def _process(pile: Pile, recording: Recording, place: int, role: str) -> None:
    """A row for each thread of the client or the scheduler that did something."""
    lanes, region = recording.lanes, recording.timeline.region
    for thread in lanes.threads(place):
        own = place == region.place and thread == region.thread
        lane = lanes.exact(place, thread)
        if own:  # what only the sampler saw goes under what is known exactly
            lane = innermost([*lanes.sampled(place, thread), *lane])
        label = f"{role}: your thread" if own and role == "client" else role
        _lane(pile, Row(label, place, role), lane)


def _worker(
    pile: Pile, recording: Recording, worker: tuple[int, str], mine: Ints, layer: Ints, gil: Ints
) -> None:
    """The rows of a worker's threads."""
    threads, lanes = recording.timeline.runs["thread"][mine], recording.lanes
    place, name = worker
    for i, thread in enumerate(present_threads(threads)):
        row = Row(f"{name}, thread {i + 1}", place, THREAD, thread)
        on = mine[threads == thread]
        _thread(pile, row, recording, on, lanes.exact(place, thread), layer, gil)


def _others(
    pile: Pile, recording: Recording, worker: tuple[int, str], mine: Ints, spans: Ints
) -> None:
    """The other rows of a worker: what it moved, spilled and loaded, and who waited."""
    place, name = worker
    _soft(pile, recording, Row(f"{name}, transfers", place, "transfer"), (_TRANSFER,), spans)
    _soft(pile, recording, Row(f"{name}, spilling", place, "spill"), _SPILL, spans)
    _lane(pile, Row(f"{name}, pickling", place, "bytes"), recording.lanes.bytes_work(place))
    _waiting(pile, Row(f"{name}, waiting for a thread", place, "waiting"), recording, mine)


def _thread(
    pile: Pile, row: Row, recording: Recording, on: Ints, lane: Lane, layer: Ints, gil: Ints
) -> None:
    """Tasks of one thread, and between them what else it did for them."""
    runs = recording.timeline.runs
    on = on[np.argsort(runs["start"][on], kind="stable")]
    start, stop = runs["start"][on], runs["stop"][on]
    level = _levels(pile, row, start, stop)
    extra = np.array([(a, b, w.step) for a, b, w in lane], np.int64).reshape(-1, 3)
    extra = extra[~_within(extra, start, np.maximum.accumulate(stop))]
    for i in range(int(level.max(initial=0)) + 1):
        task, more = on[level == i], extra if i == 0 else extra[:0]
        none = np.full(len(more), 0, np.int64)
        pile.add(
            row,
            np.append(runs["start"][task], more[:, 0]),
            np.append(runs["stop"][task], more[:, 1]),
            np.append(np.full(len(task), _COMPUTE), more[:, 2]),
            layer=np.append(layer[task], none),
            gil=np.append(gil[task], none),
            run=np.append(task, none - 1),
        )


def _levels(pile: Pile, row: Row, start: Ints, stop: Ints) -> Ints:
    """In which row below each other each task is: coroutines overlap on their loop's thread."""
    until = np.maximum(stop - _CLOCKS_NS, start)
    if not (start[1:] < np.maximum.accumulate(until)[:-1]).any():
        return np.zeros(len(start), np.int64)
    level, left = levels(start.tolist(), until.tolist())
    if left:
        pile.left_out[row.kind] += left
    return level


def _within(extra: Ints, start: Ints, stop: Ints) -> NDArray[np.bool_]:
    """Which segments overlap one of some intervals in order, `stop` being the last one so far."""
    if not len(start):
        return np.zeros(len(extra), np.bool_)
    before = np.searchsorted(start, extra[:, 1], side="left") - 1
    return (before >= 0) & (stop[np.maximum(before, 0)] > extra[:, 0])


def _soft(
    pile: Pile, recording: Recording, row: Row, steps: tuple[int, ...], of_place: Ints
) -> None:
    spans = recording.timeline.spans
    mine = of_place[np.isin(spans["step"][of_place], steps)]
    pile.add_overlapping(row, spans["start"][mine], spans["stop"][mine], spans["step"][mine])


def _waiting(pile: Pile, row: Row, recording: Recording, mine: Ints) -> None:
    """When at least one task that was ready waited for a thread."""
    runs = recording.timeline.runs
    start, stop = runs["ready"][mine], runs["start"][mine]
    long = stop > start
    start, stop = union(start[long], stop[long])
    if len(start):
        pile.add(row, start, stop, _WAIT)


def _unseen(pile: Pile, recording: Recording, layer: Ints) -> None:
    """Tasks that no worker told of, by what the scheduler saw of them.

    Of workers that were not instrumented; of others those that still run, or were lost with them.
    What was taken back before it ran took no time there.
    """
    runs = recording.timeline.runs
    told = {place.name for place in recording.store.places if place.role == "worker"}
    unseen = np.flatnonzero((runs["wplace"] < 0) & (runs["stop"] > runs["start"]))
    for worker in present(runs["worker"][unseen]):
        mine = unseen[runs["worker"][unseen] == worker]
        address = recording.store.strings[worker]
        name = safe(address) if address else "tasks not seen"
        why = "seen by the scheduler only" if address in told else "not instrumented"
        row, start, stop = Row(f"{name} ({why})", -1, THREAD), runs["start"], runs["stop"]
        pile.add_overlapping(row, start[mine], stop[mine], _COMPUTE, layer=layer[mine], run=mine)


def _lane(pile: Pile, row: Row, lane: Lane) -> None:
    if lane:
        start, stop, step = np.array([(a, b, w.step) for a, b, w in lane], np.int64).T
        pile.add(row, start, stop, step)


def _tenths(recording: Recording) -> Ints:
    """For each run the tenth of its time spent waiting for the GIL, plus 1; 0 where unknown."""
    share = recording.timeline.gil.shares
    if share is None:
        return np.zeros(len(recording.timeline.runs["run"]), np.int64)
    tenths = np.clip((share * 10).astype(np.int64), 0, 9) + 1
    return np.where(gil_seen(recording) > 0, tenths, 0)


def by_place(timeline: Timeline, name: str) -> Callable[[int], Ints]:
    """Which rows of a table are of a place, in their order: sorted once, for there may be many."""
    column = timeline.runs["wplace"] if name == "runs" else timeline.spans["place"]
    order = np.argsort(column.astype(np.int16 if column.max(initial=0) < 2**15 else np.int64),
                       kind="stable")  # fmt: skip
    ends = np.cumsum(np.bincount(column + 1))  # -1 is no place
    whole = np.append(0, ends)

    def rows(place: int) -> Ints:
        i = min(place + 1, len(ends))
        return order[whole[i] : whole[min(i + 1, len(ends))]]

    return rows


def _working(recording: Recording) -> list[int]:
    """Places that run tasks: workers, and where a local scheduler's threads or processes are."""
    ran = set(present(recording.timeline.runs["wplace"]))
    workers = {i for i, p in enumerate(recording.store.places) if p.role == "worker"}
    return sorted(ran | workers)


def present_threads(threads: Ints) -> list[int]:
    """The different threads in the order of their first task."""
    different, first = np.unique(threads, return_index=True)
    found: list[int] = different[np.argsort(first)].tolist()
    return found


def labels(recording: Recording) -> list[str]:
    """What each process is called, by its place: those of one name are numbered from the second."""
    names = recording.worker_names
    own = (
        worker_label(where.name, names, LIMIT) if where.role == "worker" else where.role
        for where in recording.store.places
    )
    return numbered(own)
