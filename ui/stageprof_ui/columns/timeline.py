"""What every process and thread did, as rows of boxes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.intervals import clip, gaps
from stageprof_collectors.account.lane import WAITED, Lane
from stageprof_collectors.account.timeline import Ints, present
from stageprof_collectors.account.union import union
from stageprof_collectors.findings.innocence import gil_seen
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.text import LIMIT
from stageprof_runtime.stage import STEP
from stageprof_ui.columns.boxes import Boxes, Pile, Row, levels
from stageprof_ui.columns.lines import THREAD
from stageprof_ui.columns.path import path
from stageprof_ui.columns.series import natural, numbered, worker_label
from stageprof_ui.columns.untold import untold

_COMPUTE: Final = STEP["compute"]
_TRANSFER: Final = STEP["data.transfer"]
_SPILL: Final = (STEP["spill.write"], STEP["spill.read"])
_WAIT: Final = STEP["wait.thread"]

#: What the rounding of clocks overlaps is no overlap, ns.
_CLOCKS_NS: Final = 1_000
#: More layers than a byte pair can number are one.
MOST_LAYERS: Final = 2**16 - 1
#: What `Boxes.left_out` counts processes under whose clocks cannot be compared.
CLOCK: Final = "clock"
#: Roles whose processes have rows for what each thread did itself.
_SINGLE: Final = ("client", "scheduler")


def boxes(recording: Recording) -> Boxes:
    """All boxes of a recording: the path, the client, the scheduler, and each worker's."""
    timed = _timed(recording)
    pile = Pile(recording.timeline.region.start, _end(recording, timed))
    path(pile, recording)
    for place, role in _single(recording):
        if timed[place]:
            _process(pile, recording, place, role)
    groups = recording.groups
    layer, gil = np.minimum(groups.of_run, MOST_LAYERS), _tenths(recording)
    called, spans = labels(recording), Rows(recording.timeline.spans["place"])
    for place in _working(recording, called):
        if timed[place]:
            runs = recording.timeline.at.of(place)
            _worker(pile, recording, (place, called[place]), runs, layer, gil)
            _others(pile, recording, (place, called[place]), runs, spans.of(place))
    untold(pile, recording, layer, called)
    pile.left_out[CLOCK] += int((~timed[spans.numbers]).sum())
    return pile.boxes([row.layer for row in groups.rows[: MOST_LAYERS + 1]])


# -- times ----------------------------------------------------------------------------------------


def _timed(recording: Recording) -> NDArray[np.bool_]:
    """Of which places it is known when they did something: their clocks can be compared.

    Tasks tell it as well: one is not over before it is given away.
    """
    timeline, places = recording.timeline, recording.store.places
    host = places[timeline.region.place].host if places else ""
    both = zip(timeline.clocks, places, strict=True)
    found = np.array([clock.known or place.host == host for clock, place in both], np.bool_)
    for name in ("place", "wplace"):
        found[present(timeline.runs[name])] = True
    return found


def _end(recording: Recording, timed: NDArray[np.bool_]) -> int:
    """The last instant that is drawn: that of the region, or of what went on after it."""
    spans, runs = recording.timeline.spans, recording.timeline.runs
    stop = int(spans["stop"][timed[spans["place"]]].max(initial=0))
    return max(recording.timeline.region.stop, stop, int(runs["stop"].max(initial=0)))


def _single(recording: Recording) -> list[tuple[int, str]]:
    """Places of clients, then of schedulers, each with its role."""
    roles = [place.role for place in recording.store.places]
    return [(i, role) for role in _SINGLE for i, r in enumerate(roles) if r == role]


# -- rows -----------------------------------------------------------------------------------------


def _process(pile: Pile, recording: Recording, place: int, role: str) -> None:
    """A row for each thread of the client or the scheduler that did something."""
    region = recording.timeline.region
    for thread in recording.lanes.threads(place):
        own = place == region.place and thread == region.thread
        label = f"{role}: your thread" if own and role == "client" else role
        _lane(pile, Row(label, place, role), _itself(recording, place, thread, own=own))


def _itself(recording: Recording, place: int, thread: int, *, own: bool) -> Lane:
    """What a thread did beside tasks, and beside waiting for those of others.

    The loop of a local scheduler is around all of a computation: its tasks are in rows of their
    own.
    """
    lanes = recording.lanes
    lane = lanes.around_loops(place, thread) or lanes.exact(place, thread)
    if own:
        lane = _over(lane, lanes.sampled(place, thread))
    lane = [segment for segment in lane if segment[2].step not in (WAITED, _COMPUTE)]
    mine = recording.timeline.at.of(place)
    mine = mine[recording.timeline.runs["thread"][mine] == thread]
    start, stop = _course(recording, mine)[1:]
    within = _within(_segments(lane), start, np.maximum.accumulate(stop))
    return [segment for segment, inside in zip(lane, within, strict=True) if not inside]


def _over(exact: Lane, sampled: Lane) -> Lane:
    """What is known exactly, and between that what only the sampler saw."""
    if not sampled:
        return exact
    free = gaps(exact, sampled[0][0], sampled[-1][1])
    return sorted([*exact, *(segment for a, b in free for segment in clip(sampled, a, b))])


def _worker(
    pile: Pile, recording: Recording, worker: tuple[int, str], mine: Ints, layer: Ints, gil: Ints
) -> None:
    """The rows of a worker's threads."""
    threads = recording.timeline.runs["thread"][mine]
    place, name = worker
    apart = recording.store.places[place].role in _SINGLE  # `_process` has what is no task
    for i, thread in enumerate(present_threads(threads)):
        row = Row(f"{name}, thread {i + 1}", place, THREAD, thread)
        lane = [] if apart else recording.lanes.exact(place, thread)
        _thread(pile, row, recording, mine[threads == thread], lane, layer, gil)


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
    on, start, stop = _course(recording, on)
    level = _levels(pile, row, start, stop)
    extra = _segments(lane)
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


def _course(recording: Recording, runs: Ints) -> tuple[Ints, Ints, Ints]:
    """Some runs in the order in which they began, when they did, and when they ended."""
    start, stop = (recording.timeline.runs[name] for name in ("start", "stop"))
    on = runs[np.argsort(start[runs], kind="stable")]
    return on, start[on], stop[on]


def _segments(lane: Lane) -> Ints:
    """Start, stop and step of each segment, a row each."""
    return np.array([(a, b, w.step) for a, b, w in lane], np.int64).reshape(-1, 3)


def _levels(pile: Pile, row: Row, start: Ints, stop: Ints) -> Ints:
    """In which row below each other each task is: coroutines overlap on their loop's thread."""
    until = np.maximum(stop - _CLOCKS_NS, start)
    if not (start[1:] < np.maximum.accumulate(until)[:-1]).any():
        return np.zeros(len(start), np.int64)
    level, left = levels(start.tolist(), until.tolist())
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


def _lane(pile: Pile, row: Row, lane: Lane) -> None:
    if lane:
        start, stop, step = _segments(lane).T
        pile.add(row, start, stop, step)


def _tenths(recording: Recording) -> Ints:
    """For each run the tenth of its time spent waiting for the GIL, plus 1; 0 where unknown."""
    share = recording.timeline.gil.shares
    if share is None:
        return np.zeros(len(recording.timeline.runs["run"]), np.int64)
    tenths = np.clip((share * 10).astype(np.int64), 0, 9) + 1
    return np.where(gil_seen(recording) > 0, tenths, 0)


def _working(recording: Recording, called: list[str]) -> list[int]:
    """Places that run tasks: workers, and where a local scheduler's threads or processes are."""
    ran = set(present(recording.timeline.runs["wplace"]))
    workers = {i for i, p in enumerate(recording.store.places) if p.role == "worker"}
    return sorted(ran | workers, key=lambda place: natural(called[place]))


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
