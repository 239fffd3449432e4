"""The run without an embedded object.

An object costs three times: on the graph's way, in the message of each task that holds it, and for
the others, which wait behind those messages. Without it the messages would be like those of tasks
that hold none; where all hold one, the pickling and the way of its bytes are taken away. Of the
time of messages that hold several objects each has the part that its bytes and its pickling are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.burden import WAY_BYTES_S, Burdens, Floats
from stageprof_collectors.findings.crowd import Bools
from stageprof_collectors.findings.embedded import Embedded
from stageprof_collectors.replay.change import Change, Factor
from stageprof_collectors.replay.relief import Covered, Interval, relief, run_windows
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_DUMP, _LOAD, _SEND = STEP["graph.dump"], STEP["graph.load"], STEP["graph.send"]
_GATHER: Final = STEP["result.gather"]
#: Steps in which a task's message is made and read.
_MESSAGES: Final = (STEP["task.dump"], STEP["task.load"])
#: A message with this share of an object's bytes or more carries it.
_MOST_OF_IT: Final = 0.5
#: So many runs that hold no object tell how long a message takes without one.
_ENOUGH: Final = 5
#: The percentile of what others take that stands for all without it.
_QUICK: Final = 25
#: What is left of a message without its objects where no others tell it, ns: a scheduler whose
#: processor others want, too, takes so long for a small one.
_SMALL_NS: Final = 5e6


class Without:
    """The run without an object."""

    def __init__(self, recording: Recording, thing: Embedded, burdens: Burdens) -> None:
        self._recording = recording
        self._thing = thing
        self._burdens = burdens
        self._runs = recording.timeline.runs

    @cached_property
    def _windows(self) -> dict[str, tuple[Ints, Ints]]:
        return run_windows(self._recording, self._runs)

    @cached_property
    def holders(self) -> Bools:
        """Which runs held it."""
        return self._burdens.holders(self._thing)

    @cached_property
    def _part(self) -> Floats:
        """Of what is taken away the part that is this object's: other objects travel on."""
        mine = self._burdens.part(self._thing)
        mean = float(mine[self.holders].mean()) if self.holders.any() else 1.0
        return np.where(self.holders, mine, mean)

    def everywhere(self) -> Change:
        """It does not travel at all."""
        return self._change(np.ones(len(self._runs["run"]), np.bool_), left=0.0)

    def once(self) -> Change:
        """It travels once with the graph, and once to each worker."""
        first = np.zeros(len(self._runs["run"]), np.bool_)
        rows = np.flatnonzero(self.holders)
        rows = rows[np.argsort(self._runs["received"][rows], kind="stable")]
        first[rows[np.unique(self._runs["worker"][rows], return_index=True)[1]]] = True
        return self._change(~first, left=1.0 / max(self._thing.copies, 1))

    def _change(self, which: Bools, left: float) -> Change:
        """Of the runs that held it only those in `which` are without it."""
        mine = self.holders & which
        rest = relief(self._recording, self._trouble(mine), common=self._pickled[1])
        least = {part: self._as_others(part) for part in ("lead", "lag")}
        return replace(
            rest,
            lead=self._of_it(np.where(mine, least["lead"], np.maximum(rest.lead, least["lead"]))),
            fetch=self._of_it(rest.fetch),
            begin=self._of_it(rest.begin),
            lag=self._of_it(np.maximum(rest.lag, least["lag"])),
            serial=self._serial(mine, left),
        )

    def _of_it(self, left: Factor) -> Floats:
        """What is left of a part of each run where all that was with it travels on."""
        return 1.0 - self._part * (1.0 - np.asarray(left, dtype=float))

    def _as_others(self, part: str) -> Floats:
        """What is left of a part of each run where it takes no longer than that of others.

        Of the others the quicker ones: some of them waited behind messages that carried it.
        """
        took = self._took(part).astype(float)
        others = took[~self.holders & (self._runs["seen"] == 1)]
        if len(others) < _ENOUGH:
            return self._lightened if part == "lead" else np.zeros(len(took))
        quick = float(np.percentile(others, _QUICK))
        found: Floats = np.minimum(1.0, quick / np.maximum(took, 1.0))
        return found

    @cached_property
    def _lightened(self) -> Floats:
        """What is left of each lead without the pickling of heavy messages and their bytes' way."""
        took = np.maximum(self._took("lead"), 1).astype(float)
        own, common = self._pickled
        rest = relief(self._recording, own, common=common)
        pickled = took * (1.0 - np.asarray(rest.lead))
        sent = self._burdens.under_way(*self._windows["lead"]) * 1e9 / WAY_BYTES_S
        left = np.maximum(took - pickled - sent, np.minimum(_SMALL_NS, took - pickled))
        found: Floats = np.clip(left / took, 0.0, 1.0)
        return found

    def _took(self, part: str) -> Ints:
        start, stop = self._windows[part]
        took: Ints = np.maximum(stop - start, 0)
        return took

    def _trouble(self, mine: Bools) -> dict[int, list[Interval]]:
        """When messages with it were on their way to each worker: others waited behind them."""
        own, _ = self._pickled
        found = defaultdict(list, {place: list(spans) for place, spans in own.items()})
        start, stop = self._windows["lead"]
        columns = (column[mine].tolist() for column in (self._runs["wplace"], start, stop))
        for place, a, b in zip(*columns, strict=True):
            if place >= 0 and b > a:
                found[place].append((a, b))
        return found

    @cached_property
    def _pickled(self) -> tuple[dict[int, list[Interval]], list[Interval]]:
        """When messages with it were unpickled, by worker, and when by others, for all of them."""
        spans, store = self._recording.timeline.spans, self._recording.store
        heavy = np.isin(spans["step"], _MESSAGES)
        heavy &= spans["nbytes"] >= _MOST_OF_IT * self._thing.each_bytes
        common: list[Interval] = []
        own: dict[int, list[Interval]]
        own = {i: [] for i, place in enumerate(store.places) if place.role == "worker"}
        columns = (spans[name][heavy].tolist() for name in ("place", "start", "stop"))
        for place, start, stop in zip(*columns, strict=True):
            own.get(place, common).append((start, stop))
        return own, common if own else []

    def _serial(self, mine: Bools, left: float) -> Callable[[Step], float]:
        """What is left of the graph's way, and of results that waited behind the object."""
        thing, entries = self._thing, self._recording.account.entries
        busy = {s: sum(e.busy for (x, _), e in entries.items() if x == s) for s in (_DUMP, _LOAD)}
        sent = sum(e.nbytes for (step, _), e in entries.items() if step == _DUMP)
        part = {
            _DUMP: thing.dump_s * 1e9 / max(busy[_DUMP], 1),
            _LOAD: thing.load_s * 1e9 / max(busy[_LOAD], 1),
            _SEND: thing.graph_bytes / max(sent, 1),
        }
        behind = self._behind(mine)

        def serial(step: Step) -> float:
            if step.what.step == _GATHER:
                return behind(step)
            return 1.0 - min(1.0, part.get(step.what.step, 0.0)) * (1.0 - left)

        return serial

    def _behind(self, mine: Bools) -> Callable[[Step], float]:
        """What is left of a result's way: each loop that it passes moved the object meanwhile."""
        start, stop = (ends[mine].tolist() for ends in self._windows["lead"])
        moved = Covered([*self._handed_over(), *zip(start, stop, strict=True)])
        part = float(self._part.mean()) if len(self._part) else 0.0

        def behind(step: Step) -> float:
            took = step.stop - step.start
            met = took * moved.part(step)
            return 1.0 - part * max(0.0, min(met, took - _SMALL_NS)) / max(took, 1)

        return behind

    def _handed_over(self) -> Iterator[tuple[int, int]]:
        """When graphs with it were on their way."""
        least = _MOST_OF_IT * self._thing.graph_bytes / self._thing.graphs
        for graph in self._recording.timeline.graphs:
            if graph.submit and graph.submit.nbytes >= max(least, 1):
                yield graph.submitted, max(graph.submitted, graph.taken)
