"""Cutting what a thread did into pieces."""

from __future__ import annotations

from typing import Any

from stageprof_collectors.account.lane import What
from stageprof_collectors.account.path import Step
from stageprof_collectors.account.program import Track
from stageprof_runtime.stage import STEP

_COMPUTE = What(STEP["compute"], -1)


class Counted(list[Step]):
    """Steps that count how many of them were asked for."""

    asked = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.asked += len(found) if isinstance(at, slice) else 1
        return found


def test_pieces_are_cut_without_a_look_at_what_lies_behind_them() -> None:
    steps = Counted(Step(start, start + 2, _COMPUTE, -1) for start in range(0, 4000, 2))
    track = Track(steps)
    steps.asked = 0
    pieces = [track.cut(start, start + 4) for start in range(0, 4000, 4)]
    assert all(
        (piece[0].start, piece[-1].stop) == (4 * i, 4 * i + 4) for i, piece in enumerate(pieces)
    )
    assert steps.asked <= 4 * len(pieces)
