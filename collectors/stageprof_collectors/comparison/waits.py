"""How much of each stage was waiting.

What a processor does for a second takes some percent more or less of it from run to run. What is
on no processor meanwhile (it waits for a disk, a lock, a service, a `sleep`) is mostly nothing, so
that a tenth of a second more of it is plain to see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stageprof_runtime.stage import STEP, STEPS, Stage

if TYPE_CHECKING:
    from stageprof_collectors.comparison.measured import Cell
    from stageprof_collectors.recording import Recording


def waits(recording: Recording, cells: Mapping[Cell, float]) -> dict[Stage, float]:
    """Seconds of the critical path in which the threads of its steps were on no processor.

    What was done of a step where the clock of its thread was read stands for all of the step; of
    steps where that was never done nothing is said.

    Args:
        recording: a whole or broken one.
        cells: where the seconds of its critical path went.
    """
    idle = _idle(recording)
    found: defaultdict[Stage, float] = defaultdict(float)
    for cell, seconds in cells.items():
        found[cell.stage] += seconds * idle.get((cell.stage, cell.step), 0.0)
    return dict(found)


def _idle(recording: Recording) -> dict[tuple[Stage, str], float]:
    """The share of each step in which its thread was on no processor."""
    known: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    table = recording.store.table("cpu")
    columns = (table[name].tolist() for name in ("step", "total", "cpu"))
    for step, total, cpu in zip(*columns, strict=True):
        known[step][0] += total
        known[step][1] += cpu
    runs = recording.timeline.runs
    mine = (runs["seen"] == 1) & (runs["cpu"] > 0)
    took, cpu = runs["stop"] - runs["start"], runs["cpu"]
    known[STEP["compute"]] = [int(took[mine].sum()), int(cpu[mine].sum())]
    return {STEPS[i]: max(0.0, 1 - cpu / total) for i, (total, cpu) in known.items() if total > 0}
