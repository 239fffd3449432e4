"""The work of moving data, of recordings made by hand."""

from __future__ import annotations

import pytest

from replay.handmade import HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import SPAN
from stageprof_runtime.stage import STEP

#: the thread of a worker's loop
LOOP = 5


def moving(*others: tuple[str, float, float]) -> Recording:
    """A worker fetches data from another for a second, and does other things at these times, ms."""
    made = HandMade(workers=2)
    graph = made.graph(0, 1, 2)
    first = made.run(0, 10, 100, cause=-1 - graph)
    fetching = {"lead": (100.0, 100.0), "fetched": 1100.0}
    last = made.run(1, 1100, 1200, cause=first, needs=[first], **fetching)  # type: ignore[arg-type]
    made.wait(2, 1200, last, 1200)
    here, there = made._workers
    rows = made.rows_of(there)
    for step, start, stop in (("data.transfer", 100.0, 1100.0), *others):
        rows.append((SPAN, STEP[step], ns(start), ns(stop), LOOP, here.name, 0))
    return made.recording(3000)


@pytest.mark.parametrize(
    ("step", "start", "stop", "within"),
    [
        ("data.load", 900, 1100, 0.2),
        ("data.load", 2000, 2800, 0.0),
        ("data.load", 1000, 1500, 0.1),
        ("connect", 100, 500, 0.4),
        ("connect", 2000, 2500, 0.0),
    ],
)
def test_of_a_transfer_is_subtracted_what_lies_within_it(
    step: str, start: float, stop: float, within: float
) -> None:
    """What is scattered, or comes by P2P, is loaded without one; connecting is its own step."""
    recording = moving((step, start, stop))

    busy = recording.steps().set_index("step")["busy_s"]
    assert busy["data.transfer"] == pytest.approx(1.0 - within)
    assert busy[step] == pytest.approx((stop - start) / 1000)
    layers = recording.layers()["communication_s"].sum()
    assert layers == pytest.approx(recording.stages()["busy_s"]["communication"])
