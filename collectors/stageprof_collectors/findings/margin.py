"""How far a predicted saving may be off beyond what its rule knows: as pairs of programs showed.

A rule's own interval holds what the recording leaves open: two ways of placing tasks, shares known
from a few looks, workers that may come sooner or later. What a user measures after the fix differs
by more. No two runs of a program take the same time; and a replay leaves out what it cannot see
(caches, a processor that two share, a loop that slows whatever runs beside it). Both are taken
from the calibration: `benchmarks/calibration.py` runs every rule's pair of programs, and prints
what the margins would have to be, and the coverage that they reach on pairs they were not
taken from. docs/calibration.md has the figures in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stageprof_collectors.findings.rule import Ground

Interval = tuple[float, float]


class Margin(NamedTuple):
    """What is added at each end of an interval, as parts of its middle."""

    below: float
    above: float


#: Of the time that is not the user's own code: by so much two runs of one program differ.
NOISE: Final = 0.05

#: By what a prediction rests on; see `benchmarks/margins.py` for how they are taken.
MARGINS: Final[Mapping[Ground, Margin]] = {
    Ground.RECORDED: Margin(0.05, 0.15),
    Ground.REWRITTEN: Margin(0.05, 0.10),
    Ground.SPREAD: Margin(0.10, 0.25),
    Ground.CROWDED: Margin(0.10, 0.55),
}


def widened(saving: Interval, margin: Margin | None, inside_s: float) -> Interval:
    """An interval that holds what will be measured in most cases.

    Args:
        saving: seconds saved, at least and at most, as far as the rule knows.
        margin: that of the rule's ground; None where nothing was calibrated: nothing is added.
        inside_s: seconds of the run without the user's own code; a margin goes no further.
    """
    low, high = saving
    if margin is None:
        return saving
    middle = (low + high) / 2
    noise = noise_of(middle, inside_s)
    return (
        max(0.0, low - margin.below * middle - noise),
        max(high, min(inside_s, high + margin.above * middle + noise)),
    )


def noise_of(middle: float, inside_s: float) -> float:
    """Seconds by which the difference of two runs is off; what saves nothing needs none."""
    return min(NOISE * max(inside_s, 0.0), middle / 2)
