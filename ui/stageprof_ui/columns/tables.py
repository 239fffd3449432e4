"""What the browser must know to name and colour boxes: steps, layers, palettes, keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import STEP, STEPS, Stage
from stageprof_ui.columns.boxes import Boxes
from stageprof_ui.columns.failed import Failed, failed
from stageprof_ui.columns.lines import THREAD
from stageprof_ui.columns.story import Graph, graphs
from stageprof_ui.palette import GIL_COLOURS, LAYER_COLOURS, OTHER_COLOUR, STAGE_COLOURS

#: Characters of a key that go there.
KEY: Final = 200
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
_UNKNOWN: Final = "unknown, or no task"
_WAITS: Final = (_UNKNOWN, *_SHARES, "hardly needs the GIL")
_ORDER: Final = (_WAITS[-1], *_SHARES, _UNKNOWN)
_COMPUTE: Final = STEP["compute"]
#: The group of layers that have no colour of their own.
_OTHER: Final = len(LAYER_COLOURS) - 1


#: What layers of one colour have in common: prefix and line, safe to show.
_Thing = tuple[str, str]


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
        legend: the groups of layers that have boxes, each with what it is called.
    """

    steps: Sequence[Step]
    stages: Sequence[str]
    layers: Sequence[Layer]
    palettes: dict[str, Sequence[str]]
    graphs: Sequence[Graph]
    legend: Sequence[tuple[int, str]] = ()
    failed: Failed = field(default_factory=Failed)


def tables(recording: Recording, boxes: Boxes) -> Tables:
    """The tables of a recording."""
    steps = [Step(str(stage), name) for stage, name in STEPS]
    layers, legend = _layers(recording, boxes)
    return Tables(
        steps,
        [str(stage) for stage in Stage],
        layers,
        {
            "layer": [*LAYER_COLOURS, OTHER_COLOUR],
            "stage": list(STAGE_COLOURS.values()),
            "gil": [*GIL_COLOURS, OTHER_COLOUR],
        },
        graphs(recording),
        legend,
        failed(recording, boxes),
    )


def legends(found: Tables) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each way of colouring tasks its colours, each with what it means."""
    colours = found.palettes
    layers = [(colours["layer"][group], name) for group, name in found.legend]
    waits = zip(colours["gil"], _WAITS, strict=False)  # without what is no task
    return [
        ("layer", [*layers, (OTHER_COLOUR, "no task")]),
        ("stage", list(zip(colours["stage"], found.stages, strict=True))),
        ("gil", sorted(waits, key=lambda entry: _ORDER.index(entry[1]))),
    ]


def _layers(recording: Recording, boxes: Boxes) -> tuple[list[Layer], Sequence[tuple[int, str]]]:
    """The layers, and a legend of their colours.

    Those with most seconds have colours of their own. Layers of one prefix that one line made are
    the same thing, done again: they have one.
    """
    texts = [_texts(row) for row in recording.groups.rows[: len(boxes.layers)]]
    thread = np.repeat([row.kind == THREAD for row in boxes.rows], np.diff(boxes.offsets))
    length = np.where(thread & (boxes.step == _COMPUTE), boxes.length, 0)
    weights = np.bincount(boxes.layer, weights=length, minlength=len(texts))
    total = Counter[_Thing]()
    for (_, *thing), weight in zip(texts[1:], weights[1:].tolist(), strict=True):
        total[thing[0], thing[1]] += weight
    things = [thing for thing, weight in total.most_common() if weight > 0]
    group = {thing: i for i, thing in enumerate(things[:_OTHER])}
    found = [Layer(*text, group.get((text[1], text[2]), _OTHER)) for text in texts]
    found[0] = replace(found[0], group=_OTHER)
    return found, _legend(things, more=len(things) > _OTHER or weights[0] > 0)


def _texts(row: Row) -> tuple[str, str, str]:
    """What a layer, its prefix and the line that made it are called."""
    name, prefix, where = (
        safe(text, limit=200) for text in (row.layer, row.prefix, at(row.file, row.line))
    )
    return name, prefix, where


def _legend(things: Sequence[_Thing], *, more: bool) -> list[tuple[int, str]]:
    """Names of groups; the line is told where several lines made layers of one prefix."""
    often = Counter(prefix for prefix, _ in things)
    own = [
        (i, f"{prefix}, {where}" if where and often[prefix] > 1 else prefix or "no name")
        for i, (prefix, where) in enumerate(things[:_OTHER])
    ]
    return own + ([(_OTHER, "other layers")] if more else [])


def too_many(recording: Recording) -> bool:
    """Whether the keys of its tasks stay here."""
    return len(recording.timeline.runs["key"]) > KEYS


def keys(recording: Recording) -> NDArray[np.uint8]:
    """The keys of all tasks by row of their table, a line each, in UTF-8; none if too many."""
    if too_many(recording):
        return np.zeros(0, np.uint8)
    runs = recording.timeline.runs
    lines = "\n".join(safe(key, limit=KEY) for key in recording.store.keys(runs["key"]))
    return np.frombuffer(lines.encode("utf-8", "replace"), np.uint8)


def cut(keys: NDArray[np.uint8]) -> bool:
    """Whether one of the keys goes there without its end."""
    return "…\n".encode() in keys.tobytes() + b"\n"
