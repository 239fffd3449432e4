"""Wall time and work of each process; they add up to the account."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import pytest

import stageprof
from benchmarks.generate import generate
from stageprof_collectors.recording import Recording
from stageprof_runtime.stage import SIX
from ui.observed import Observed


def uneven() -> Recording:
    """One worker works for 100 ms and sends its result to the other, which works for 40 ms."""
    made = Observed(2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 100, cause=-1 - graph, key="load-0")
    made.sent(0, 1, 110, 140, 1_000_000)
    last = made.run(1, 160, 200, cause=first, lead=(105, 110), needs=[first], wanted=True)
    made.wait(0, 200, last, 200)
    return made.recording(200)


def test_work_is_that_of_the_process_which_did_it() -> None:
    """The one that waits for data is told from the one that they come from."""
    places = uneven().places().set_index("place")
    sender, receiver = (places.loc[f"tcp://host:{port}"] for port in (10, 11))

    assert (sender["execution_s"], receiver["execution_s"]) == pytest.approx((0.1, 0.04))
    assert (sender["communication_s"], receiver["communication_s"]) == pytest.approx((0, 0.03))
    assert (sender["role"], receiver["pid"]) == ("worker", 11)
    assert receiver["waited_s"] == pytest.approx(0.05)


def local() -> Recording:
    with stageprof.profile() as prof:
        da.ones((200, 200), chunks=100).sum().compute(scheduler="threads")
    return prof.recording


@pytest.fixture(params=["uneven", "generated", "local"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Recording:
    """By hand, of a cluster, and of a local scheduler."""
    if request.param == "generated":
        generate(tmp_path / "x.stageprof", tasks=500, workers=3, seed=1)
        return Recording.open(tmp_path / "x.stageprof")
    return {"uneven": uneven, "local": local}[request.param]()


def test_places_add_up_to_the_account(recording: Recording) -> None:
    """To the wall time, to each role's lines, and to each stage's work."""
    places, steps, stages = recording.places(), recording.steps(), recording.stages()
    assert places["wall_s"].sum() == pytest.approx(recording.wall)
    assert places["busy_s"].sum() == pytest.approx(stages["busy_s"].sum())
    for stage in SIX:
        assert places[f"{stage}_s"].sum() == pytest.approx(stages["busy_s"][stage], abs=1e-9)
    for column in ("wall_s", "waited_s"):
        by_role = places.groupby("role")[column].sum()
        for role, seconds in steps.groupby("role")[column].sum().items():
            assert by_role[str(role)] == pytest.approx(seconds), (role, column)
