"""What has to be added to the predicted intervals for them to hold what is measured.

`stageprof_collectors.findings.margin` has the margins in force. Here they are taken from a
calibration: by how much each measured difference lies outside the interval that the rule gives by
itself, less the noise of runs, as a part of the interval's middle. A margin is what nine of ten
pairs of its ground need, at each end. A margin that was taken from the pairs that it is tried on
would look too good: so each pair is also tried with margins that were taken from the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from stageprof_collectors.findings.margin import MARGINS, Margin, noise_of, widened
from stageprof_collectors.findings.rule import Ground

#: What part of the pairs a margin is to be enough for, at each end.
ENOUGH: Final = 0.9
#: Margins are rounded up to these: more digits than a calibration has.
STEP: Final = 0.05


def excess(row: pd.Series[float]) -> tuple[float, float]:
    """How far a measured difference is below and above the rule's own interval, by its middle."""
    low, high = row["own_low_s"], row["own_high_s"]
    middle = (low + high) / 2
    if middle <= 0:
        return 0.0, 0.0
    noise = noise_of(middle, row["bad_s"])
    below, above = low - noise - row["measured_s"], row["measured_s"] - high - noise
    return max(0.0, below / middle), max(0.0, above / middle)


def fitted(pairs: pd.DataFrame) -> Margin:
    """The margin that is enough for most of some pairs."""
    if not len(pairs):
        return Margin(0.0, 0.0)
    ends = np.array([excess(row) for _, row in pairs.iterrows()])
    # Of n pairs the n-th plus one is to be held: the fewer there are, the more is needed.
    below, above = np.quantile(ends, min(1.0, ENOUGH * (1 + 1 / len(pairs))), axis=0)
    return Margin(*(math.ceil(round(end / STEP, 6)) * STEP for end in (below, above)))


def holds(row: pd.Series[float], margin: Margin) -> bool:
    """Whether an interval with this margin holds what was measured."""
    own = row["own_low_s"], row["own_high_s"]
    low, high = widened(own, margin, row["bad_s"])
    return bool(low <= row["measured_s"] <= high)


def coverages(frame: pd.DataFrame) -> tuple[float, float, float]:
    """Parts of the pairs that are held: bare, by the margins in force, by the others' margins."""
    bare, force, others = [], [], []
    for rule, row in frame.iterrows():
        alike = frame[(frame["ground"] == row["ground"]) & (frame.index != rule)]
        bare.append(row["own_low_s"] <= row["measured_s"] <= row["own_high_s"])
        force.append(holds(row, MARGINS[row["ground"]]))
        others.append(holds(row, fitted(alike)))
    return float(np.mean(bare)), float(np.mean(force)), float(np.mean(others))


def report(frame: pd.DataFrame) -> Iterator[str]:
    """The margins in force and those that this calibration asks for, as lines of markdown."""
    bare, force, others = coverages(frame)
    yield "## What the intervals are made of"
    yield ""
    yield f"- the rules' own intervals hold the measured difference of {bare:.0%} of the pairs"
    yield f"- with the noise of runs and the margins in force: {force:.0%}"
    yield f"- with margins taken from all pairs but the one that is asked: {others:.0%}"
    yield ""
    yield "| ground | pairs | in force, below and above | asked for here |"
    yield "|---|---|---|---|"
    for ground in Ground:
        mine = frame[frame["ground"] == ground]
        force_, here = MARGINS[ground], fitted(mine)
        yield (
            f"| {ground} | {len(mine)} | {force_.below:.0%}, {force_.above:.0%} | "
            f"{here.below:.0%}, {here.above:.0%} |"
        )
