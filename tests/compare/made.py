"""Measured recordings made by hand: what a comparison sees of a run, with known noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stageprof_collectors.comparison.comparison import Compared, Options, compared
from stageprof_collectors.comparison.measured import Cell, Group, Measured
from stageprof_runtime.stage import Stage

#: The program: what takes how many seconds, in which layer of which line.
LOAD = Cell(Stage.EXECUTION, "compute", Group("load", "etl.py", 12))
JOIN = Cell(Stage.EXECUTION, "compute", Group("join", "etl.py", 30))
BUILD = Cell(Stage.CONSTRUCTION, "build", Group("join", "etl.py", 30))
DUMP = Cell(Stage.SERIALIZATION, "graph.dump", Group("join", "etl.py", 30))
USUAL = {LOAD: 0.8, JOIN: 0.6, BUILD: 0.3, DUMP: 0.2}
COUNTS = {
    "tasks": 100.0, "graph_tasks": 100.0, "layers": 2.0, "graph_bytes": 50_000.0,
    "pickled_bytes": 90_000.0, "transferred_bytes": 1e6, "transitions": 200.0,
    "embedded_copies": 0.0,
}  # fmt: skip
CONDITIONS = {"machine": "ci, 2 CPUs", "versions": "dask 2026.8.0", "cluster": "2 workers"}


def run(cells: Mapping[Cell, float] = USUAL, **fields: Any) -> Measured:
    """One recording that takes these seconds."""
    stages = {stage: sum(s for c, s in cells.items() if c.stage == stage) for stage in Stage}
    usual = Measured(
        file="run.stageprof", program="etl.py", conditions=CONDITIONS, incomplete="", lost="",
        wall_s=sum(cells.values()), stages=stages, cells=dict(cells), waits={}, counts=COUNTS,
        tasks={}, read={}, objects={}, findings={},
    )  # fmt: skip
    return replace(usual, **fields)


def runs(
    number: int = 7,
    more: Mapping[Cell, float] | None = None,
    *,
    seed: int,
    noise: float = 0.01,
    **fields: Any,
) -> list[Measured]:
    """Several recordings of the same, each part of which varies by `noise` of itself.

    `more` are seconds that parts take beyond what they usually do.
    """
    random = np.random.default_rng(seed)
    cells = dict(USUAL)
    for cell, seconds in (more or {}).items():
        cells[cell] = cells.get(cell, 0.0) + seconds
    return [
        run({cell: s * random.lognormal(0, noise) for cell, s in cells.items()}, **fields)
        for _ in range(number)
    ]


def against(base: list[Measured], head: list[Measured], **options: Any) -> Compared:
    """Compare them."""
    return compared(base, head, Options(**options))


def judged(found: Compared) -> dict[str, str]:
    """What is said of each time."""
    return {time.name: str(time.judged) for time in found.times}
