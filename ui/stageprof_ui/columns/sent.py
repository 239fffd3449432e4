"""What goes to a browser, in columns of one row each cell of which is an array.

Made once for a recording: the pages of all who look at it share these arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from stageprof_ui.columns.boxes import Boxes
from stageprof_ui.columns.packing import steps
from stageprof_ui.columns.tables import KEYS, Tables

Columns = dict[str, Any]


@dataclass(frozen=True)
class Sent:
    """Boxes (`columns`, and when their threads had the GIL), stories and keys, tables as JSON."""

    boxes: Columns
    stories: Columns
    tables: str


def columns(boxes: Boxes, kept: Callable[[Any], Any] = lambda column: column) -> Columns:
    """Boxes as `browser/boxes.js` reads them; `kept` of the columns that are made for it."""
    names = ("length", "step", "layer", "gil", "offsets")
    # The number of a run leads to its key; where keys are too many to be sent, to nothing.
    run = boxes.run if boxes.run.max(initial=-1) < KEYS else np.minimum(boxes.run, 0)
    grown = {"start": [kept(steps(boxes.start))], "run": [kept(steps(run))]}
    return {"unit_ns": [boxes.unit_ns]} | grown | {name: [getattr(boxes, name)] for name in names}


def emptied(boxes: Boxes) -> Boxes:
    """The same rows without a box."""
    none = boxes.through(lambda column: column[:0])
    return replace(none, offsets=np.zeros(len(boxes.rows) + 1, np.uint32))


def text(tables: Tables) -> str:
    """Tables as JSON."""
    return json.dumps(asdict(tables))
