"""A process of a simulated computation: its place, its clock, and the rows that it emitted."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from stageprof_runtime.event import Place

TICK: Final = 100_000_000

Row = tuple[Any, ...]


@dataclass
class Process:
    """A place, its clock (off by `offset` ns and fast by `drift`), and the rows it emitted."""

    place: Place
    offset: int
    drift: float
    rows: defaultdict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def clock(self, t: float) -> int:
        """What this process's clock shows at true time t, ns."""
        return int(self.offset + t * (1 + self.drift))

    def emit(self, t: float, *row: object) -> None:
        """Note a row that came into being at true time t."""
        self.rows[int(t) // TICK].append(row)
