"""What the user moves is no layer's."""

from __future__ import annotations

import pytest

from replay.handmade import CLIENT, LANE, HandMade, ns
from stageprof_runtime.event import BLOCK


def test_data_that_are_scattered_are_of_no_layer_of_the_graph_that_comes_next() -> None:
    made = HandMade(workers=1)
    scatter = (BLOCK, ns(0), ns(1000), LANE, "_scatter", 0, 0, 0, "")
    made.rows_of(CLIENT).append(scatter)
    graph = made.graph(1000, 1000, 1000)
    run = made.run(0, 1000, 1100, cause=-1 - graph, wanted=True)
    made.wait(1000, 1100, run, 1100)

    layers = made.recording(1100).layers().set_index("layer")

    assert layers["wall_s"]["task"] == pytest.approx(0.1)
    assert layers["wall_s"][""] == pytest.approx(1.0)
