"""What the browser must know to name and colour boxes: steps, layers, palettes, keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.findings.phrase import at
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import STEPS, Stage
from stageprof_ui.columns.boxes import Boxes
from stageprof_ui.columns.story import Graph, graphs
from stageprof_ui.palette import GIL_COLOURS, LAYER_COLOURS, OTHER_COLOUR, STAGE_COLOURS

#: Up to so many tasks their keys go to the browser, for the search and for naming boxes.
KEYS: Final = 300_000

#: What the colours of the GIL mean, and the order in which a reader meets them.
_SHARES: Final = (
    "has it, waits under 20 %",
    "20 to 40 %",
    "40 to 60 %",
    "60 to 80 %",
    "80 to 100 %",
)
_WAITS: Final = ("unknown", *_SHARES, "hardly needs the GIL", "no task")
_ORDER: Final = (_WAITS[-2], *_SHARES, "unknown", "no task")


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
    """

    steps: Sequence[Step]
    stages: Sequence[str]
    layers: Sequence[Layer]
    palettes: dict[str, Sequence[str]]
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
        graphs(recording),
    )


def legends(found: Tables) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each way of colouring tasks its colours, each with what it means."""
    colours = found.palettes
    own = {layer.group: layer.prefix for layer in found.layers[1:]}
    own[len(LAYER_COLOURS) - 1] = "other layers"
    layers = [(colours["layer"][group], own[group] or "no name") for group in sorted(own)]
    waits = zip(colours["gil"], _WAITS, strict=True)
    return [
        ("layer", [*layers, (OTHER_COLOUR, "no task")]),
        ("stage", list(zip(colours["stage"], found.stages, strict=True))),
        ("gil", sorted(waits, key=lambda entry: _ORDER.index(entry[1]))),
    ]


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
        texts = (row.layer, row.prefix, at(row.file, row.line))
        name, prefix, where = (safe(text, limit=200) for text in texts)
        found.append(Layer(name, prefix, where, rank.get(i, own)))
    return found


def too_many(recording: Recording) -> bool:
    """Whether the keys of its tasks stay here."""
    return len(recording.timeline.runs["key"]) > KEYS


def keys(recording: Recording) -> NDArray[np.uint8]:
    """The keys of all tasks by row of their table, a line each, in UTF-8; none if too many."""
    if too_many(recording):
        return np.zeros(0, np.uint8)
    runs = recording.timeline.runs
    lines = "\n".join(safe(key, limit=200) for key in recording.store.keys(runs["key"]))
    return np.frombuffer(lines.encode("utf-8", "replace"), np.uint8)
