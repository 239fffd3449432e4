"""Tasks that no worker told of, as rows of boxes: what the scheduler saw of them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import LOCAL, given_back
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.text import safe
from stageprof_runtime.stage import STEP
from stageprof_ui.columns.boxes import Pile, Row
from stageprof_ui.columns.lines import THREAD

#: What `Boxes.left_out` counts tasks under that had not ended and that no thread was left for.
THREADLESS: Final = "threadless"
_COMPUTE: Final = STEP["compute"]


def untold(pile: Pile, recording: Recording, layer: Ints, called: list[str]) -> None:
    """Tasks of workers that were not instrumented; of others those that still run, or were lost.

    Those that had not ended reach to the end of the region. What was taken back before it ran took
    no time there. `called` is what each process is called, by its place.
    """
    runs = recording.timeline.runs
    unseen = (runs["wplace"] < 0) & ~given_back(runs)
    ended = np.flatnonzero(unseen & (runs["stop"] > runs["start"]))
    open_ = _running(pile, recording, np.flatnonzero(unseen & (runs["finished"] == 0)))
    mine = np.append(ended, open_)
    stop = np.append(runs["stop"][ended], np.full(len(open_), recording.timeline.region.stop))
    here = stop > runs["start"][mine]
    _rows(pile, recording, mine[here], stop[here], layer, called)


def _rows(
    pile: Pile, recording: Recording, mine: Ints, stop: Ints, layer: Ints, called: list[str]
) -> None:
    """The rows of each worker, with its tasks and when these end."""
    runs, strings = recording.timeline.runs, recording.store.strings
    both = zip(recording.store.places, called, strict=True)
    told = {place.name: label for place, label in both if place.role == "worker"}
    by_worker = Rows(runs["worker"][mine])
    for worker in by_worker.numbers:
        at = by_worker.of(worker)
        which = mine[at]
        address = strings[worker]
        name = told.get(address) or safe(address) or "tasks not seen"
        known = address in told or bool(_local(runs["run"][which]).any())
        why = "told by the scheduler" if known else "not instrumented"
        row, start = Row(f"{name} ({why})", -1, THREAD), runs["start"][which]
        pile.add_overlapping(row, start, stop[at], _COMPUTE, layer=layer[which], run=which)


def _running(pile: Pile, recording: Recording, unended: Ints) -> Ints:
    """Those that are taken to run: the oldest of each worker, one for each of its threads."""
    if not len(unended):
        return unended
    runs = recording.timeline.runs
    local = _local(runs["run"][unended])
    by_worker, found = Rows(runs["worker"][unended[~local]]), [unended[local]]
    free = _free(recording)
    for worker in by_worker.numbers:
        mine = unended[~local][by_worker.of(worker)]
        threads = max(free.get(recording.store.strings[worker], len(mine)), 0)
        found.append(mine[:threads])
        pile.left_out[THREADLESS] += max(len(mine) - threads, 0)
    return np.concatenate(found)


def _free(recording: Recording) -> dict[str, int]:
    """Threads of each worker, by its address, but those of tasks that it told of and that go on."""
    workers, runs = recording.workers(), recording.timeline.runs
    threads = dict(zip(workers["worker"], workers["threads"].tolist(), strict=True))
    own = runs["worker"][(runs["seen"] == 1) & (runs["finished"] == 0)]
    for worker, busy in zip(*np.unique(own, return_counts=True), strict=True):
        address = recording.store.strings[int(worker)]
        threads[address] = threads.get(address, 0) - int(busy)
    return threads


def _local(numbers: Ints) -> NDArray[np.bool_]:
    """Which runs are those of a local scheduler."""
    return numbers >= LOCAL
