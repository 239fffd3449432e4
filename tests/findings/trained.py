"""Recordings of trainings made by hand, and what a user has when a fix is run."""

from __future__ import annotations

from typing import Any, Final

from replay.handmade import CLIENT, LANE, SCHEDULER, HandMade, ns
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.rule import Rule
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import ARRIVE, BLOCK, GRAPH, MARK, SUBMIT, TRAIN

FILE: Final = "/home/u/train.py"
#: The client's loop, where a framework's coroutines run.
LOOP: Final = 8
#: How long each piece, each training, and all that is before the first takes, ms.
PIECE, TRAINING, BEFORE = 100, 400, 50

#: What XGBoost is given: 10 pieces of 100,000 rows x 150 columns, as in the catalogue's example.
DATA: Final[dict[str, Any]] = {
    "variable": "x",
    "label": "y",
    "name": "x-1a2b",
    "type": "Array",
    "pieces": 10,
    "column_pieces": 1,
    "merged": 0,
    "rows": 1_000_000,
    "width": 150,
    "nbytes": 1_200_000_000,
    "held": 0,
    "pending": 0,
}


class Trained(HandMade):
    """Trainings of XGBoost, one after another, each on data that it makes first."""

    def __init__(self, workers: int = 2, threads: int = 1, *, memory: int = 0, **data: Any) -> None:
        super().__init__(workers, threads)
        for worker in self._workers:
            label = f"{worker.name} {threads} {memory} {worker.pid}"
            self._rows[SCHEDULER].append((MARK, ns(0), "worker seen", label))
        self._data = DATA | data
        self._now = float(BEFORE)
        self._number = 0

    def training(self, made_by: list[int], trained_by: list[int], *, keys: str = "x-1a2b") -> None:
        """Pieces are made by some workers one after another, and some workers train."""
        start = self._now
        self._by_loop(start)
        ends = dict.fromkeys(made_by, start)
        runs: list[int] = []
        for piece in range(self._data["pieces"]):
            worker = made_by[piece % len(made_by)]
            stop = ends[worker] + PIECE
            cause = -self._graphs if ends[worker] == start else runs[-len(made_by)]
            key: Any = (keys, piece, 0)
            run = self.run(worker, ends[worker], stop, cause=cause, key=key, wanted=True)
            runs.append(run)
            ends[worker] = stop
        made = max(ends.values())
        self._wait(start, made, (keys, self._data["pieces"] - 1, 0))
        self._row("xgboost.dask.DaskDMatrix", start, made, 10, self._data)
        self._by_loop(made)
        done = made + TRAINING
        for worker in trained_by:
            trainer = f"fn-{self._runs}"
            self.run(worker, made, done, cause=-self._graphs, key=trainer, wanted=True)
        self._wait(made, done, trainer)
        self._row("xgboost.dask.train", made, done, 12, {})
        self._now = done

    def refused(self, call: str = "lightgbm.dask.DaskLGBMRegressor.fit", **data: Any) -> None:
        """A call that raised at once."""
        self._row(call, self._now, self._now + TRAINING, 10, self._data | data, failed=1)
        self._now += TRAINING

    def joins(self, worker: int) -> None:
        """A worker is there only from now on."""
        rows, name = self._rows[SCHEDULER], self._workers[worker].name
        rows[:] = [r for r in rows if r[0] != MARK or not r[3].startswith(f"{name} ")]
        rows.append((MARK, ns(self._now), "worker seen", f"{name} 1 0 {worker}"))

    def end(self) -> Recording:
        """The recording of it all."""
        return self.recording(self._now)

    def _by_loop(self, t: float) -> None:
        number, self._graphs = self._graphs, self._graphs + 1
        self._rows[CLIENT].append((SUBMIT, number, ns(t), 1, 0, LOOP, FILE, 10))
        self._rows[SCHEDULER].append((GRAPH, number, ns(t), ns(t), 1, 1, CLIENT.name, -1))

    def _wait(self, start: float, stop: float, key: Any) -> None:
        self._rows[CLIENT].append((ARRIVE, ns(stop), key))
        row = (BLOCK, ns(start), ns(stop), LANE, "sync", ns(stop), 0, 0, key)
        self._rows[CLIENT].append(row)

    def _row(
        self, call: str, start: float, stop: float, line: int, data: dict[str, Any], failed: int = 0
    ) -> None:
        if not call.endswith("train"):
            self._number += 1
        empty = dict.fromkeys(DATA, 0) | dict.fromkeys(("variable", "label", "name", "type"), "")
        facts = (empty | data).values()
        head = (TRAIN, ns(start), ns(stop), LANE, call, self._number, FILE, line)
        self._rows[CLIENT].append((*head, *facts, failed))


def findings(rule: Rule, recording: Recording, **limits: float) -> list[Finding]:
    """What a rule finds with its own limits but for those given."""
    own = {name: limit.default for name, limit in rule.limits.items()}
    return list(rule.find(recording, own | limits))


def after(fix: str, **names: Any) -> dict[str, Any]:
    """The user's names after a fix was run as it is printed."""
    exec(fix, names)
    return names
