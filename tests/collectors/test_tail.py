"""What is missing of workers that did not tell all is told: how long, and of how many tasks."""

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

    def __init__(self, *, told: bool = False, well: bool = False, stuck: bool = False) -> None:
        super().__init__(2)
        cause = -1 - self.graph(0, 0, 0)
        for worker in (0, 1, 0, 1):
            start = self._runs * 100.0
            cause = self.run(worker, start, start + 100, cause=cause, lead=(start, start))
        if not told:
            rows = self._rows[self._workers[0]]
            rows.remove(next(row for row in rows if row[0] == RUN and row[1] == 2))
        if stuck:
            self.undrained(400)
        else:
            self.lost(0, 400, results=0, running=0, well=well)

    def undrained(self, at: float) -> None:
        """The first worker is asked for what is left, and does not answer."""
        self._befell("not drained", at, FIRST)

    def says_that_it_told_all(self) -> None:
        """As it goes in good order."""
        self._rows[self._workers[0]].append((MARK, ns(400), "told all", ""))

    def recording(self, stop: float = 1000, *, attached: bool = False) -> Recording:
        recording = super().recording(stop, attached=attached)
        # It told last at 150 ms, not at the end.
        recording.store.origins[2].last_t = 1_150_000_000
        return recording


def test_a_worker_that_died_did_not_tell_of_its_last_task() -> None:
    found = Died().recording()
    assert found.coverage()["tails_lost"] == {
        FIRST: {"seconds": pytest.approx(0.25), "tasks": 1, "died": True}
    }
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
    made.says_that_it_told_all()
    assert made.recording().coverage()["tails_lost"] == {}


def test_a_worker_that_went_well_and_did_not_tell_all_is_told_of() -> None:
    assert list(Died(well=True).recording().coverage()["tails_lost"]) == [FIRST]


def test_a_worker_that_did_not_answer_at_the_end_is_told_of_and_not_said_to_be_dead() -> None:
    """Its event loop stood still for as long as it was waited for."""
    found = Died(stuck=True).recording()
    assert found.coverage()["tails_lost"] == {
        FIRST: {"seconds": pytest.approx(0.25), "tasks": 1, "died": False}
    }
    assert "1 silent worker's end lost" in summarize(found).coverage
    assert "dead" not in summarize(found).coverage
    said = (
        f"{FIRST} did not answer when the recording ended; the last 250 ms of what it did are "
        "lost, in which 1 task ended."
    )
    assert said in coverage(found)["sentences"]


def test_nobody_knows_what_else_it_did_that_had_told_of_all_its_tasks() -> None:
    (tail,) = Died(told=True, stuck=True).recording().coverage()["tails_lost"].values()
    assert (tail["tasks"], tail["died"]) == (0, False)


def test_a_worker_that_told_all_before_it_was_asked_lost_nothing() -> None:
    """As where somebody has taken our plugin away from the workers."""
    made = Died(told=True, stuck=True)
    made.says_that_it_told_all()
    assert made.recording().coverage()["tails_lost"] == {}


def test_a_worker_that_died_while_it_was_asked_is_told_of_once() -> None:
    made = Died()
    made.undrained(390)
    (tail,) = made.recording().coverage()["tails_lost"].values()
    assert tail["died"]


def test_of_a_worker_that_never_told_anything_no_end_is_missing() -> None:
    """It is one that was not observed."""
    made = Died(told=True)
    made._befell("not drained", 400, "tcp://host:99")
    assert set(made.recording().coverage()["tails_lost"]) == {FIRST}


@pytest.mark.parametrize("label", ["", " ", "x", f"{FIRST} 1 1", f"{FIRST} 0 0 2", "9" * 99])
def test_a_mark_that_makes_no_sense_harms_nothing(label: str) -> None:
    made = Workers(1)
    made._befell("worker lost", 1, label)
    assert set(made.recording(100).coverage()["tails_lost"]) <= {FIRST}
