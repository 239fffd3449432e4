"""Many objects, scattered or embedded, and many sources cost about so many times one of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from findings.crowded import CLIENT, FILE, LANE, SCHEDULER, WORKER, Program, calls, ns
from spent import spent
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import BLOCK, SCATTER, SHARE, SPAN, STACK, UNUSED
from stageprof_runtime.stage import STEP


def scattered(number: int) -> Recording:
    """So many arrays, each sent twice in a call of its own."""
    made = Program()
    for i in (*range(number), *range(number)):
        row = (i, "numpy.ndarray", "table", FILE, 10, FILE, 12, 30_000_000)
        made.rows[CLIENT].append((SCATTER, ns(made.now), *row))
        began, made.now = ns(made.now + 0.01), made.now + 100
        made.rows[CLIENT].append((BLOCK, began, ns(made.now), LANE, "_scatter", 0, 0, 0, ""))
    made.tasks(calls(4), work=100.0)
    return made.recording()


def embedded(number: int) -> Recording:
    """So many frames, each in a graph of its own whose layer was fused."""
    made = Program()
    for i in range(number):
        layer, began = f"apply-{i:032x}", made.now
        made.made(layer, 12)
        made.embedded(f"weights-{i:032x}", number=i, nbytes=1_000_000)
        made.client("serialization/graph.dump", 0.3)
        made.tasks([(layer, 0)], work=5.0, lead=2.0)
        t = ns(began + 0.5)
        made.rows[SCHEDULER].append((SPAN, STEP["graph.load"], t, t + 300_000, LANE, "", 1000))
        row = (SHARE, ns(made.now), STEP["task.dump"], layer, 1, 100_000, 1_000_500)
        made.rows[SCHEDULER].append(row)
    return made.recording()


def loaded(number: int) -> Recording:
    """So many layers of a task each that loads more columns than are used."""
    made = Program()
    for i in range(number):
        layer = f"read-{i:032x}"
        row = (ns(made.now), layer, "columns", "['a']", "load", 1, 10)
        made.rows[CLIENT].append((UNUSED, *row))
        made.tasks([(layer, 0)], work=5.0, lead=2.0)
        look = ("read", f"{FILE}:{i} load", "python", "load", 1, 5_000_000)
        made.rows[WORKER].append((STACK, ns(made.now), *look))
    return made.recording()


def seconds(recording: Recording) -> float:
    """Of the processor that findings and the table of objects take."""
    return spent(lambda: (recording.findings(), recording.objects()))


@pytest.mark.parametrize("of", [scattered, embedded, loaded])
def test_eight_times_as_many_take_about_eight_times_as_long(
    of: Callable[[int], Recording],
) -> None:
    """Not 64 times, as where the whole path is walked, or all hand-overs looked at, for each."""
    seconds(of(10))  # what is made once
    assert seconds(of(640)) < 13 * seconds(of(80))
