"""Reading planted delays back: the bar of the ground truth, in one place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import stageprof
from planted import truths

#: A delay must be read back within this share and these seconds.
SHARE, SECONDS = 0.05, 0.05
#: The lines must sum to the wall time within this share; this share may be unexplained.
SUM, UNEXPLAINED = 0.01, 0.03


@dataclass
class Reading:
    """One program recorded with a delay planted and, just before, without."""

    recording: stageprof.Recording
    baseline: stageprof.Recording
    truth: list[dict[str, Any]] = field(default_factory=list)

    def seconds(self, what: str, where: Callable[[dict[str, Any]], bool] = bool) -> float:
        """Sum of what was noted under a name."""
        return math.fsum(t["seconds"] for t in self.truth if t["what"] == what and where(t))

    def extra(self, column: str = "wall_s") -> dict[str, float]:
        """Seconds of each stage beyond the baseline."""
        with_, without = self.recording.stages()[column], self.baseline.stages()[column]
        return {str(stage): float(with_[stage] - without[stage]) for stage in with_.index}


def record(program: Callable[[], object], **options: Any) -> stageprof.Recording:
    """Run a program under `profile` in memory; its account must add up."""
    with stageprof.profile(**options) as prof:
        program()
    adds_up(prof.recording)
    return prof.recording


def adds_up(recording: stageprof.Recording) -> None:
    """The eight lines sum to the wall time, and hardly any of it is unexplained."""
    stages = recording.stages()
    total = float(stages["wall_s"].sum())
    assert abs(total - recording.wall) <= SUM * recording.wall, stages
    assert stages["wall_s"]["unexplained"] <= UNEXPLAINED * recording.wall, stages


def read_back(program: Callable[[str, float], object], delay: float, folder: Path) -> Reading:
    """Run `program(log, delay)`: once unrecorded to warm up, once without delay, once with."""
    program(str(folder / "warm"), 0.0)
    baseline = record(lambda: program(str(folder / "without"), 0.0))
    log = folder / "with"
    recording = record(lambda: program(str(log), delay))
    return Reading(recording, baseline, truths(log))


def appears_in(reading: Reading, expected: dict[str, float]) -> None:
    """The planted seconds are in their stages, and nowhere else."""
    slack = SECONDS + SHARE * sum(expected.values())
    assert min(expected.values()) > slack, "too little was planted to be seen"
    for stage, seconds in reading.extra().items():
        want = expected.get(stage, 0.0)
        table = reading.recording.steps().head(25).to_string()
        assert abs(seconds - want) <= slack, f"{stage}: {seconds:.3f} s for {want:.3f} s\n{table}"


def in_steps(reading: Reading, expected: dict[str, float]) -> None:
    """The planted seconds are in these steps, within the same bar."""
    for step, seconds in expected.items():
        found = step_seconds(reading.recording, step)
        assert found == pytest.approx(seconds, rel=SHARE, abs=SECONDS), step


def step_seconds(recording: stageprof.Recording, step: str, role: str = "") -> float:
    """Wall seconds of a step, of one role or of all."""
    steps = recording.steps()
    mine = steps[(steps["step"] == step) & (steps["role"].isin([role] if role else steps["role"]))]
    return float(mine["wall_s"].sum())
