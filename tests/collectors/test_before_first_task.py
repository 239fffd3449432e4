"""What passed before a layer's tasks is a part of what the layer has of the wall time."""

from __future__ import annotations

from replay.handmade import HandMade
from stageprof_collectors.recording import Recording


def overlapping() -> Recording:
    """While a result is fetched the tasks of the next graph begin, of which more are wanted.

    The first half of the fetch, before they began, was all for the one that was there by then.
    """
    made = HandMade(workers=2)
    first = made.graph(0, 0, 0)
    fetched = made.run(
        0, 10, 95, cause=-1 - first, key=("first-layer", 0), finished=98, wanted=True
    )
    second = made.graph(90, 90, 90, wanted=2)
    for i, (start, stop) in enumerate([(150, 160), (165, 190)]):
        made.run(1, start, stop, cause=-1 - second, key=("second-layer", i), wanted=True)
    made.wait(95, 200, fetched, 100)
    return made.recording(200)


def test_no_layer_has_more_before_its_tasks_than_in_all() -> None:
    table = overlapping().layers().set_index("prefix")

    assert (table["before_first_task_s"] <= table["wall_s"] + 1e-12).all()
    assert table["before_first_task_s"].sum() > 0.04
