"""What is done for each worker does not look at all the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spent import spent
from stageprof_collectors.findings.skew import slower
from stageprof_collectors.storage.alignment import align
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import Place


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, the least of three times."""
    return min(spent(work) for _ in range(3))


def aligned(workers: int) -> Callable[[], object]:
    """The clocks of so many workers, from their recording."""
    store = Store()
    for n in range(workers):
        store.add(pack(Place("worker", "h", n, f"tcp://{n}", 0), 0, 0, []))
    return lambda: align(store, 0)


def slowest(workers: int) -> Callable[[], object]:
    """By how much each of so many workers with ten tasks is slower than all others."""
    took, worker = np.random.default_rng(0).random(10 * workers), np.arange(10 * workers) % workers
    return lambda: slower(took, worker)


@pytest.mark.parametrize("of", [aligned, slowest])
def test_eight_times_the_workers_take_about_eight_times_as_long(
    of: Callable[[int], Callable[[], object]],
) -> None:
    """Not 64 times, as where each worker is compared with all others one by one."""
    assert seconds(of(8_000)) < 24 * seconds(of(1_000))


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.floats(0.1, 9, allow_nan=False)), min_size=1, max_size=30
    )
)
def test_what_a_worker_is_slower_by_is_what_medians_of_copies_say(
    runs: list[tuple[int, float]],
) -> None:
    worker, took = np.array([w for w, _ in runs]), np.array([s for _, s in runs])
    expected = {}
    for one in set(worker.tolist()):
        here, there = took[worker == one], took[worker != one]
        if len(here) > 1 and len(there) > 1:
            expected[one] = np.median(here) / np.median(there)

    assert slower(took, worker) == pytest.approx(expected)
