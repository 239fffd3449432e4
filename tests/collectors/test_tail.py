"""What is missing of workers that died is told: for how long, and of how many tasks."""

from __future__ import annotations

import pytest

from findings.workers import Workers
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import summarize
from stageprof_runtime.event import MARK, RUN
from stageprof_ui.columns.coverage import coverage

FIRST = "tcp://host:10"


class Died(Workers):
    """Two runs on each of two workers; what the first told of its last run never came."""

    def __init__(self, *, told: bool = False, well: bool = False) -> None:
        super().__init__(2)
        cause = -1 - self.graph(0, 0, 0)
        for worker in (0, 1, 0, 1):
            start = self._runs * 100.0
            cause = self.run(worker, start, start + 100, cause=cause, lead=(start, start))
        if not told:
            rows = self._rows[self._workers[0]]
            rows.remove(next(row for row in rows if row[0] == RUN and row[1] == 2))
        self.lost(0, 400, results=0, running=0, well=well)

    def recording(self, stop: float = 1000, *, attached: bool = False) -> Recording:
        recording = super().recording(stop, attached=attached)
        # It told last at 150 ms, not at the end.
        recording.store.origins[2].last_t = 1_150_000_000
        return recording


def test_a_worker_that_died_did_not_tell_of_its_last_task() -> None:
    found = Died().recording()
    assert found.coverage()["tails_lost"] == {FIRST: {"seconds": pytest.approx(0.25), "tasks": 1}}
    assert "1 dead worker's end lost" in summarize(found).coverage
    said = f"{FIRST} died; the last 250 ms of what it did are lost, in which 1 task ended."
    assert said in coverage(found)["sentences"]


def test_a_worker_that_died_may_have_told_of_all_its_tasks() -> None:
    """What else it did is lost all the same."""
    (tail,) = Died(told=True).recording().coverage()["tails_lost"].values()
    assert tail["tasks"] == 0


def test_a_worker_that_went_well_lost_nothing() -> None:
    found = Died(told=True, well=True).recording()
    assert found.coverage()["tails_lost"] == {}
    assert "nothing lost" in summarize(found).coverage


def test_a_worker_that_said_that_it_told_all_lost_nothing() -> None:
    """Dask does not expect it where somebody interrupts a worker, which goes in good order."""
    made = Died(told=True)
    made._rows[made._workers[0]].append((MARK, ns(400), "told all", ""))
    assert made.recording().coverage()["tails_lost"] == {}


def test_a_worker_that_went_well_and_did_not_tell_all_is_told_of() -> None:
    assert list(Died(well=True).recording().coverage()["tails_lost"]) == [FIRST]


@pytest.mark.parametrize("label", ["", " ", "x", f"{FIRST} 1 1", f"{FIRST} 0 0 2", "9" * 99])
def test_a_mark_that_makes_no_sense_harms_nothing(label: str) -> None:
    made = Workers(1)
    made._befell("worker lost", 1, label)
    assert set(made.recording(100).coverage()["tails_lost"]) <= {FIRST}
