"""Results that went from one worker to another: between whom, and from which tasks to which."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.groups import Groups, Row
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Lane:
    """What one worker got from another, by their addresses."""

    sender: str
    receiver: str
    same_host: bool
    nbytes: int
    seconds: float
    fetches: int


@dataclass(frozen=True)
class Stream:
    """Results of one layer that tasks of another needed on another worker."""

    made: Row
    used: Row
    #: rows of the runs that made and that used them
    makers: Ints
    users: Ints
    nbytes: int
    #: results that travelled, each counted once for each worker that got it
    results: int

    @property
    def cause(self) -> str:
        """One cause for all rules that see these results travel."""
        return f"transfer:{self.made.layer}:{self.used.layer}"


class Traffic:
    """The transfers of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._runs = recording.timeline.runs
        needs = recording.timeline.depends
        row = needs.user
        on = needs.on
        places = self._runs["wplace"]
        apart = (places[row] >= 0) & (places[on] >= 0) & (places[row] != places[on])
        apart &= self._runs["run"][row] < LOCAL
        #: pairs of runs on two workers, the second of which needed the first
        self._user, self._maker = row[apart], on[apart]

    def __bool__(self) -> bool:
        return bool(len(self._user))

    @cached_property
    def lanes(self) -> list[Lane]:
        """Who sent how much to whom, most first."""
        spans, store = self._recording.timeline.spans, self._recording.store
        hosts = {place.name: place.host for place in store.places}
        total: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        rows = np.flatnonzero(spans["step"] == STEP["data.transfer"])
        names = ("place", "label", "start", "stop", "nbytes")
        columns = zip(*(spans[n][rows].tolist() for n in names), strict=True)
        for place, label, start, stop, nbytes in columns:
            entry = total[store.strings[label], store.places[place].name]
            for i, value in enumerate((nbytes, stop - start, 1)):
                entry[i] += value
        found = [
            Lane(a, b, hosts.get(a, a) == hosts.get(b, b), nbytes, ns / 1e9, number)
            for (a, b), (nbytes, ns, number) in total.items()
        ]
        return sorted(found, key=lambda lane: -lane.nbytes)

    @property
    def makers(self) -> Ints:
        """Rows of the runs whose results travelled."""
        return np.unique(self._maker)

    @cached_property
    def main(self) -> Stream | None:
        """The layers between which transfers took most of the critical path."""
        groups, seconds = self._groups, self._fetching()
        count: Ints = np.bincount(self._user, minlength=len(seconds))
        each = seconds[self._user] / np.maximum(count[self._user], 1)
        code = groups.of_run[self._maker] * len(groups.rows) + groups.of_run[self._user]
        if not len(code):
            return None
        codes, which = np.unique(code, return_inverse=True)
        sums = np.bincount(which, weights=each)
        made, used = divmod(int(codes[int(np.argmax(sums))]), len(groups.rows))
        mine = which == int(np.argmax(sums))
        return self._stream(groups.rows[made], groups.rows[used], mine)

    def _fetching(self) -> NDArray[np.float64]:
        """Seconds that each run's fetching is on the critical path."""
        runs, found = self._runs, np.zeros(len(self._runs["run"]))
        for step in self._recording.path_steps:
            if step.run >= 0 and runs["received"][step.run] <= step.start < runs["ready"][step.run]:
                found[step.run] += (step.stop - step.start) / 1e9
        return found

    def _stream(self, made: Row, used: Row, mine: Bools) -> Stream:
        user, maker = self._user[mine], self._maker[mine]
        got = np.unique(np.stack([maker, self._runs["wplace"][user]]), axis=1)
        nbytes = int(self._runs["nbytes"][got[0]].sum())
        return Stream(made, used, np.unique(maker), np.unique(user), nbytes, got.shape[1])

    @cached_property
    def _groups(self) -> Groups:
        return self._recording.groups
