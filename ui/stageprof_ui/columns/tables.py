"""What the browser must know to name and colour boxes: steps, layers, palettes, keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import numpy as np

from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import STEPS, Stage
from stageprof_ui.columns.boxes import Boxes
from stageprof_ui.columns.story import Graph, graphs
from stageprof_ui.palette import GIL_COLOURS, LAYER_COLOURS, OTHER_COLOUR, STAGE_COLOURS

#: Up to so many tasks their keys go to the browser, for the search and for naming boxes.
KEYS: Final = 300_000


@dataclass(frozen=True)
class Step:
    """A step by its code."""

    stage: str
    name: str


@dataclass(frozen=True)
class Layer:
    """A layer by its number in `Boxes.layers`; texts are safe to show."""

    name: str
    prefix: str
    line: str
    #: which colour it has
    group: int


@dataclass(frozen=True)
class Tables:
    """All of it; goes to the browser as JSON.

    Attributes:
        palettes: colours by group for each way of colouring; the last is that of what is no task.
        keys: of runs, as text, by row of the table of tasks; None if they are too many.
    """

    steps: Sequence[Step]
    stages: Sequence[str]
    layers: Sequence[Layer]
    palettes: dict[str, Sequence[str]]
    keys: Sequence[str] | None
    graphs: Sequence[Graph]


def tables(recording: Recording, boxes: Boxes) -> Tables:
    """The tables of a recording."""
    steps = [Step(str(stage), name) for stage, name in STEPS]
    return Tables(
        steps,
        [str(stage) for stage in Stage],
        _layers(recording, boxes),
        {
            "layer": [*LAYER_COLOURS, OTHER_COLOUR],
            "stage": list(STAGE_COLOURS.values()),
            "gil": [*GIL_COLOURS, OTHER_COLOUR],
        },
        _keys(recording),
        graphs(recording),
    )


def _layers(recording: Recording, boxes: Boxes) -> list[Layer]:
    """Those with most seconds have colours of their own."""
    weights = np.bincount(boxes.layer, weights=boxes.length, minlength=len(boxes.layers))
    weights[0] = -1
    own = len(LAYER_COLOURS) - 1
    rank = {int(i): place for place, i in enumerate(np.argsort(-weights, kind="stable")[:own])}
    rows = recording.groups.rows
    found = []
    for i in range(len(boxes.layers)):
        row = rows[i]
        line = f"{PurePath(row.file).name}:{row.line}" if row.file else ""
        texts = (safe(text, limit=200) if text else "" for text in (row.layer, row.prefix, line))
        name, prefix, where = texts
        found.append(Layer(name, prefix, where, rank.get(i, own)))
    return found


def _keys(recording: Recording) -> list[str] | None:
    runs = recording.timeline.runs
    if len(runs["key"]) > KEYS:
        return None
    return [safe(key, limit=200) for key in recording.store.keys(runs["key"])]
