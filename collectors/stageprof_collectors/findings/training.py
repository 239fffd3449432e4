"""Trainings of machine-learning models: when, on which data, and which tasks did the work.

A framework trains where the pieces of the data are: one task on each worker that holds some.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.timeline import Columns, Ints
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.tasks import layer_of
from stageprof_collectors.text import number
from stageprof_runtime.event import STATUS

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: How the keys of the tasks begin that train, one on each worker with data, by framework.
TRAINERS: Final = {"xgboost": "fn-", "lightgbm": "_train_part-"}
#: Frameworks as their users write them.
TITLES: Final = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "dask_ml": "dask-ml"}

_MEMORY: Final = STATUS.index("memory")


@dataclass(frozen=True)
class Given:
    """Data that a framework was given; fields as `event.FIELDS[TRAIN]` has them, times aligned."""

    start: int
    stop: int
    call: str
    number: int
    file: str
    line: int
    variable: str
    label: str
    name: str
    type: str
    pieces: int
    column_pieces: int
    merged: int
    rows: int
    width: int
    nbytes: int
    held: int
    pending: int
    failed: int

    @property
    def framework(self) -> str:
        """As its users write it."""
        package = self.call.partition(".")[0]
        return TITLES.get(package, package)


@dataclass(frozen=True)
class Training:
    """One call that trained, or was to."""

    #: the call itself, and what it was given (itself, if it takes collections)
    call: Given
    given: Given
    #: the rows of `Timeline.runs` that trained
    trainers: Ints


class Trainings:
    """All trainings of a recording, and what the cluster was like at each."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __bool__(self) -> bool:
        """Whether there is any; costs nothing."""
        return self._recording.store.rows("train") > 0

    @cached_property
    def calls(self) -> list[Given]:
        """All noted calls in their order."""
        store = self._recording.store
        table = self._recording.timeline.read("train", "start", "stop")
        texts = {"call", "file", "variable", "label", "name", "type"}
        names = list(Given.__dataclass_fields__)
        columns = [
            [store.strings[i] for i in table[n].tolist()] if n in texts else table[n].tolist()
            for n in names
        ]
        rows = [Given(*row) for row in zip(*columns, strict=True)]
        return sorted(rows, key=lambda row: row.start)

    @property
    def given(self) -> list[Given]:
        """The calls that were given collections and took them."""
        return [call for call in self.calls if call.pieces and not call.failed]

    @property
    def runs(self) -> Columns:
        """See `Timeline.runs`."""
        return self._recording.timeline.runs

    @cached_property
    def all(self) -> list[Training]:
        """The calls that trained, and those that failed before they could."""
        matrices: dict[int, Given] = {}
        found = []
        for call in self.calls:
            if call.call.endswith("DMatrix") and not call.failed:
                matrices[call.number] = call
            elif call.pieces or call.number in matrices:
                given = call if call.pieces else matrices[call.number]
                found.append(Training(call, given, self._trainers(call)))
        return found

    def _trainers(self, call: Given) -> Ints:
        """The runs that trained within a call."""
        begin = TRAINERS.get(call.call.partition(".")[0])
        runs = self.runs
        rows = np.flatnonzero((runs["start"] >= call.start) & (runs["stop"] <= call.stop))
        rows = rows[runs["stop"][rows] > 0]
        keys = self._recording.store.keys(runs["key"][rows]) if begin and len(rows) else []
        return rows[[i for i, key in enumerate(keys) if key.startswith(begin or "")]]

    def making(self, name: str) -> Ints:
        """The runs that made the pieces of a collection."""
        return np.flatnonzero(np.array([layer == name for layer in self._layers], bool))

    @cached_property
    def _layers(self) -> list[str]:
        return [layer_of(key) for key in self.keys]

    @cached_property
    def keys(self) -> list[str]:
        """The key of each run."""
        return self._recording.store.keys(self.runs["key"])

    # -- the cluster --------------------------------------------------------------------------

    def workers(self, t: int) -> dict[str, tuple[int, int]]:
        """The workers that were there at an instant: address -> threads, when they were seen."""
        marks = self._recording.timeline.marks
        left = {label: when for when, _, label in marks("worker left")}
        found = {}
        for when, _, label in marks("worker seen"):
            address, threads = [*label.split(" ", 2), "", ""][:2]
            gone = left.get(address, t + 1)
            if when <= t and number(threads) >= 0 and not when < gone <= t:
                found[address] = number(threads), when
        return found

    def trained(self, training: Training) -> set[str]:
        """Addresses of the workers that took part."""
        strings = self._recording.store.strings
        return {strings[i] for i in self.runs["worker"][training.trainers].tolist()}

    def threads(self, t: int) -> int:
        """Threads of all workers at an instant."""
        return sum(threads for threads, _ in self.workers(t).values())

    def placed(self, training: Training) -> int:
        """When the last piece of the data was begun (ns); the region's start if that was before."""
        making = self.making(training.given.name)
        making = making[self.runs["start"][making] < training.call.start]
        start = self._recording.timeline.region.start
        return int(self.runs["start"][making].max()) if len(making) else start

    def spread(self, training: Training) -> tuple[Training, int, int]:
        """A training, the threads of the workers that took part, and all that there were."""
        there, took_part = self.workers(training.call.start), self.trained(training)
        used = sum(threads for address, (threads, _) in there.items() if address in took_part)
        return training, max(used, 1), max(used, 1, self.threads(training.call.start))


def again(trainings: Trainings, calls: list[Given]) -> Ints:
    """The runs within some calls that made a key which had been made before."""
    runs = trainings.runs
    within = np.zeros(len(runs["run"]), bool)
    for call in calls:
        within |= (runs["start"] >= call.start) & (runs["stop"] <= call.stop)
    made: set[str] = set()
    found = []
    for row, key in enumerate(trainings.keys):
        if runs["status"][row] == _MEMORY:
            if key in made and within[row]:
                found.append(row)
            made.add(key)
    return np.array(found, np.int64)


def without(recording: Recording, rows: Ints) -> Change:
    """Some runs take no time at all."""
    left = np.ones(len(recording.timeline.runs["run"]))
    left[rows] = 0.0
    return Change(compute=left, lead=left, fetch=left, lag=left)


def cause(given: Given) -> str:
    """The same for all findings about what one line gave to a framework."""
    return f"training:{given.file}:{given.line}"


def what(given: Given) -> str:
    """The data as the user knows it."""
    return f"`{given.variable}`" if given.variable else "the data"


def at(given: Given) -> str:
    """The user's line, in short."""
    return f"{PurePath(given.file).name}:{given.line}"
