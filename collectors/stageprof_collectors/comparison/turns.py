"""Whether both sides were recorded in turn, by when each recording began.

What a machine does changes more from one hour to the next than from one recording to the next. The
tests of `chance` take recordings for independent: where one side was recorded after the other, a
machine that got slower in between looks like a slower program.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stageprof_collectors.comparison.measured import Measured


def in_turn(base: Sequence[Measured], head: Sequence[Measured]) -> bool | None:
    """Whether the sides take turns about as often as by lot, or oftener; None: it is not known.

    By lot a side of seven comes in four stretches against seven.
    """
    sides = (base, head)
    began = sorted((each.began_s, side) for side in (0, 1) for each in sides[side])
    if any(at <= 0.0 for at, _ in began):
        return None
    stretches = [side for side, _ in groupby(side for _, side in began)]
    fewer = min((0, 1), key=lambda side: len(sides[side]))
    return 2 * stretches.count(fewer) >= len(sides[fewer])
