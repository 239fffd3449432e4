"""What Dask computes while it optimizes, of recordings made by hand: it is optimization."""

from __future__ import annotations

import pytest

from replay.handmade import HandMade
from stageprof_runtime.stage import Stage


def test_a_computation_within_an_optimization_is_a_part_of_it() -> None:
    """The statistics of Parquet files, say: nobody would wait for them but to optimize."""
    made = HandMade(1)
    made.span("expr", 100, 900)
    graph = made.graph(200, 210, 220)
    statistics = made.run(0, 230, 600, cause=-1 - graph, wanted=True)
    made.wait(200, 650, statistics, 600)
    graph = made.graph(1000, 1010, 1020)
    task = made.run(0, 1030, 1400, cause=-1 - graph, wanted=True)
    made.wait(1000, 1400, task, 1400)

    recording = made.recording(1500)

    wall = recording.stages()["wall_s"]
    assert wall[Stage.OPTIMIZATION] == pytest.approx(0.8)
    assert wall[Stage.EXECUTION] == pytest.approx(0.37)
    nested, _ = recording.computations().to_dict("records")
    assert nested["optimization_s"] == pytest.approx(nested["duration_s"])
    assert recording.stages()["busy_s"][Stage.EXECUTION] == pytest.approx(0.74)
