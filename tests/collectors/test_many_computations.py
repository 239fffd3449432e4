"""A loop of many small computations costs about so many times one of them."""

from __future__ import annotations

from findings.crowded import CLIENT, FILE, LANE, SCHEDULER, WORKER, Program, ns
from spent import spent
from stageprof_collectors.comparison.measured import measure
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import SHARE, SPAN
from stageprof_runtime.stage import STEP

#: Steps of a message each, where, and how long after the hand-over or the task's end, ms.
MESSAGES = [
    ("graph.load", SCHEDULER, 0.1),
    ("task.dump", SCHEDULER, 0.9),
    ("task.load", WORKER, 1.3),
    ("result.dump", WORKER, 7.1),
    ("result.load", CLIENT, 7.5),
]


def looped(computes: int) -> Recording:
    """So many at one line, each with a layer of its own, of which messages tell their parts."""
    made = Program()
    for i in range(computes):
        layer = f"sum-{i:032x}"
        made.made(layer, 12)
        made.client("construction/build", 1.0, f"{FILE}:12")
        made.client("optimization/expr", 0.5)
        made.client("serialization/graph.dump", 0.3)
        began = made.now
        made.tasks([(layer, 0)], work=5.0, lead=2.0)
        for name, place, later in MESSAGES:
            step, t = STEP[name], ns(began + later)
            lane = LANE + (place == CLIENT)
            made.rows[place].append((SPAN, step, t, t + 300_000, lane, "", 1000))
            if name != "graph.load":
                made.rows[place].append((SHARE, ns(made.now), step, layer, 1, 100_000, 500))
        made.now += 1.0
    return made.recording()


def seconds(computes: int) -> float:
    """Of the processor that its tables, findings and what is compared take."""
    recording = looped(computes)
    asked = recording.layers, recording.computations, recording.findings
    return spent(lambda: ([ask() for ask in asked], measure(recording)))


def test_eight_times_the_computations_take_about_eight_times_as_long() -> None:
    """Not 64 times, as where each is shared over, or looked for among, the layers of all others."""
    seconds(10)  # what is made once
    assert seconds(1200) < 13 * seconds(150)
