"""Which runs were under way, or there for a part of a stall, found without a look at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.handmade import HandMade
from stageprof_collectors.account import ongoing
from stageprof_collectors.account.ongoing import Ongoing
from stageprof_collectors.findings.presence import Presence

#: When each of some runs was assigned and when it ended; 0: never.
RUNS = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 60)), max_size=40)
INSTANTS = st.integers(0, 70)


@given(RUNS, INSTANTS, st.integers(1, 5))
def test_it_is_those_assigned_before_that_had_not_ended(
    drawn: list[tuple[int, int]], t: int, chunk: int
) -> None:
    assigned, finished = np.array(drawn, np.int64).reshape(-1, 2).T
    rows = np.arange(0, len(drawn), 2)
    expected = [
        row for row in rows if assigned[row] < t and (finished[row] >= t or not finished[row])
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ongoing, "_CHUNK", chunk)
        found = Ongoing({"assigned": assigned, "finished": finished}, rows).at(t)
    assert found.tolist() == expected


@given(RUNS, INSTANTS, st.integers(1, 20))
def test_there_for_half_a_stall_are_those_that_cover_half_of_it(
    drawn: list[tuple[int, int]], begin: int, ns: int
) -> None:
    timeline: Any = HandMade(workers=1).recording(1).timeline
    start, length = np.array(drawn, np.int64).reshape(-1, 2).T
    timeline.at = type("At", (), {"of": lambda _, place: np.arange(len(drawn)) * (place == 0)})()
    timeline.runs = {"start": start, "stop": start + length}
    both = np.minimum(start + length, begin + ns) - np.maximum(start, begin)

    found = Presence(timeline, [0]).during(begin, begin + ns, 0.5)

    assert sorted(found.tolist()) == np.flatnonzero(both >= 0.5 * ns).tolist()
