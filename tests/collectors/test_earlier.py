"""What a thread ran right before a run, told without putting all threads in order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stageprof_collectors.account.earlier import Earlier
from stageprof_collectors.account.timeline import Timeline
from stageprof_collectors.storage.rows import Rows

#: place, thread, start, length, whether its worker told of it
RUN = st.tuples(
    st.integers(-1, 2), st.integers(0, 2), st.integers(0, 20), st.integers(0, 5), st.booleans()
)


def timeline(runs: list[tuple[int, int, int, int, bool]]) -> Timeline:
    place, thread, start, length, seen = np.array(runs, np.int64).T
    columns = {
        "wplace": place, "thread": thread, "start": start, "stop": start + length, "seen": seen,
    }  # fmt: skip
    return cast("Timeline", SimpleNamespace(runs=columns, at=Rows(place)))


def searched(runs: list[tuple[int, int, int, int, bool]], run: int) -> int:
    """The same by looking at all runs of the thread."""
    place, thread, start, _, seen = runs[run]
    order = sorted((r[2], i) for i, r in enumerate(runs) if r[:2] == (place, thread))
    at = order.index((start, run))
    if place < 0 or not thread or not seen or not at:
        return -1
    other = order[at - 1][1]
    ended = runs[other][2] + runs[other][3] <= start
    return other if ended and runs[other][4] else -1


@given(st.lists(RUN, min_size=1, max_size=30))
def test_it_is_the_one_that_a_search_of_all_runs_finds(runs: list[Any]) -> None:
    earlier = Earlier(timeline(runs))
    found = [earlier.of(run) for run in range(len(runs))]
    assert found == [searched(runs, run) for run in range(len(runs))]
