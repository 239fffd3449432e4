"""Reading planted seconds back line by line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import stageprof
from planted import truths
from stageprof_runtime.stage import SIX
from truth import record

#: A planted line gets at least this share of its planted seconds, and no other line more than the
#: rest of them beyond what it costs without the delay.
LEAST = 0.95
#: What a line may cost from one run to the next, seconds.
NOISE = 0.05


def line_of(function: Callable[..., object], marker: str) -> int:
    """The line of a function's source that ends in `# <- marker`."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [i for i, text in enumerate(lines) if text.rstrip().endswith(f"# <- {marker}")]
    return first + found


@dataclass
class Reading:
    """A program with a planted and an innocent line, recorded without a delay and with it."""

    program: Callable[[str, float], object]
    recording: stageprof.Recording
    baseline: stageprof.Recording
    log: Path

    def seconds(self) -> float:
        """What the planted delays really took together."""
        return float(sum(t["seconds"] for t in truths(self.log)))

    def cost(self, marker: str, column: str) -> float:
        """Seconds of a marked line, beyond those that it costs without the delay."""
        found, without = (
            at(each, self.program, marker, column) for each in (self.recording, self.baseline)
        )
        return found - without


def at(
    recording: stageprof.Recording, program: Callable[..., object], marker: str, column: str
) -> float:
    """What the table of lines says of a marked line."""
    table: pd.DataFrame = recording.lines()
    mine = table["file"] == inspect.getsourcefile(program)
    mine &= table["line"] == line_of(program, marker)
    return float(table[column][mine].sum())


def read(program: Callable[[str, float], object], delay: float, folder: Path) -> Reading:
    """Run `program(log, delay)` to warm up, without delay, and with it."""
    program(str(folder / "warm"), 0.0)
    baseline = record(lambda: program(str(folder / "without"), 0.0))
    log = folder / "with"
    recording = record(lambda: program(str(log), delay))
    for each in (baseline, recording):
        sums_to_the_stages(each)
    return Reading(program, recording, baseline, log)


def sums_to_the_stages(recording: stageprof.Recording) -> None:
    """Rows of both tables sum to the busy seconds of each stage."""
    stages = recording.stages()["busy_s"]
    for table in (recording.layers(), recording.lines()):
        for stage in SIX:
            total, wanted = float(table[f"{stage}_s"].sum()), float(stages[str(stage)])
            assert abs(total - wanted) <= 1e-6 + 1e-9 * wanted, (stage, total, wanted)


def is_blamed(reading: Reading, stage: str) -> None:
    """The planted line gets the planted seconds of a stage, and the innocent line none."""
    planted = reading.seconds()
    column = f"{stage}_s"
    table = reading.recording.lines().to_string()
    found, other = reading.cost("planted", column), reading.cost("innocent", column)
    assert found >= LEAST * planted - NOISE, f"{found} of {planted}\n{table}"
    assert other <= (1 - LEAST) * planted + NOISE, f"innocent: {other} of {planted}\n{table}"
