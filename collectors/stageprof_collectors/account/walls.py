"""The blocking account between any two instants: the critical path, summed up once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Ints
from stageprof_runtime.stage import Stage, stage_of

#: An instant (ns) after all.
FOREVER: Final = 1 << 62
_LINES = [*Stage]
_INDEX = {stage: i for i, stage in enumerate(_LINES)}


class Walls:
    """Seconds of each line of the account within windows, each found by halving."""

    def __init__(self, steps: Sequence[Step]) -> None:
        """Sum up `steps`, which are in order and do not overlap."""
        self._start = np.array([step.start for step in steps], np.int64)
        self._length = np.array([step.stop for step in steps], np.int64) - self._start
        self._line = np.array([_INDEX[stage_of(step.what.step)] for step in steps], np.int64)
        each = np.zeros((len(steps) + 1, len(_LINES)), np.int64)
        each[np.arange(len(steps)) + 1, self._line] = self._length
        self._before = each.cumsum(axis=0)

    def between(self, begin: int, stop: int) -> dict[str, float]:
        """Seconds between two instants (ns) as `<stage>_s` for the eight lines."""
        seconds = (self._until(max(begin, stop)) - self._until(begin)) / 1e9
        return {f"{stage}_s": s for stage, s in zip(_LINES, seconds.tolist(), strict=True)}

    def seconds(self, begin: int = 0, stop: int = FOREVER) -> float:
        """Seconds of all lines between two instants (ns)."""
        return float((self._until(max(begin, stop)) - self._until(begin)).sum()) / 1e9

    def _until(self, t: int) -> Ints:
        """Ns of each line before an instant."""
        i = int(np.searchsorted(self._start, t, side="right")) - 1
        if i < 0:
            return np.zeros(len(_LINES), np.int64)
        done: Ints = self._before[i].copy()
        done[self._line[i]] += min(t - int(self._start[i]), int(self._length[i]))
        return done
