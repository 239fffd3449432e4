"""Predicted savings against measured ones, on programs of sleeps that were really run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import dask
import pytest
from distributed import Client

import clusters
from replay.programs import PAIRS, asked, every, moved
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import STEP
from truth import record

#: What was measured may miss the predicted interval by this share and these seconds: both runs
#: have the noise of their machine.
SHARE, SECONDS = 0.2, 0.06
#: An unchanged replay is off by no more than this share.
ERROR = 0.05


#: Those that are tried on threads every time, as all are on a cluster.
ON_THREADS = ("a slow task on the path", "slow construction")

#: What Dask's own monitor says on a busy machine.
pytestmark = pytest.mark.filterwarnings("ignore:timed out waiting on channel")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Two workers with a thread each, in processes."""
    with clusters.local(2, 1) as client:
        yield client


def foretold(slow: Callable[[], object], fast: Callable[[], object], change: Change | None,
             make: Callable[[Recording], Change] | None = None) -> None:  # fmt: skip
    """The saving that a replay of the slow run predicts is what the fast one saves."""
    fast()  # what is imported for the first time is no part of the difference
    before = record(slow)
    after = record(fast)
    low, high = before.replay.saving(change or (make(before) if make else Change()))
    measured = before.wall - after.wall
    shown = f"predicted {low:.3f} to {high:.3f} s of {before.wall:.3f} s, measured {measured:.3f} s"
    assert before.replay.errors[0] <= ERROR, before.replay.errors
    around = SHARE * max(measured, 0.0) + SECONDS
    assert low - around <= measured <= high + around, shown


@pytest.mark.parametrize("name", PAIRS)
def test_a_cause_taken_away_on_a_cluster_saves_what_was_foretold(
    cluster: Client, name: str
) -> None:
    pair = PAIRS[name]
    foretold(lambda: pair.program(pair.slow), lambda: pair.program(pair.fast), None, pair.change)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name not in ON_THREADS)) for name in PAIRS],
)
def test_a_cause_taken_away_on_threads_saves_what_was_foretold(name: str) -> None:
    pair = PAIRS[name]
    with dask.config.set(scheduler="threads", num_workers=2):
        foretold(
            lambda: pair.program(pair.slow), lambda: pair.program(pair.fast), None, pair.change
        )


def test_a_result_that_need_not_be_moved_saves_what_was_foretold(cluster: Client) -> None:
    change = Change(fetch=0.0)
    foretold(lambda: moved(cluster, 0.8), lambda: moved(cluster, 0.0), change)


def test_what_need_not_come_to_a_task_that_asked_saves_what_was_foretold(cluster: Client) -> None:
    way = {STEP[name] for name in ("result.dump", "result.load")}
    change = Change(serial=lambda step: float(step.what.step not in way))
    foretold(lambda: asked(cluster, 0.8), lambda: asked(cluster, 0.0), change)


def test_more_threads_of_a_local_scheduler_save_what_was_foretold() -> None:
    def program(threads: int) -> None:
        with dask.config.set(scheduler="threads", num_workers=threads):
            every(0.2)

    foretold(lambda: program(2), lambda: program(4), Change(threads=4))


@pytest.mark.nightly
def test_more_threads_of_workers_save_what_was_foretold(cluster: Client) -> None:
    """The fast run has a cluster of its own, in which nothing is recorded but the wall time."""
    before = record(lambda: every(0.2))
    with clusters.local(2, 2):
        every(0.0)
        after = record(lambda: every(0.2))
    low, high = before.replay.saving(Change(threads=2))
    measured = before.wall - after.wall
    assert before.replay.errors[0] <= ERROR
    shown = f"predicted {low:.3f} to {high:.3f} s, measured {measured:.3f} s"
    assert low * (1 - SHARE) - SECONDS <= measured <= high * (1 + SHARE) + SECONDS, shown
