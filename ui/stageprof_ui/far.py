"""Boxes that are too many to be sent: what a browser asks of them, and the answers.

The boxes are one object for all who look at a recording; a question and its answer are those of
one picture of one browser.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
import numpy as np
from bokeh.models import ColumnDataSource

from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_ui.columns import story, window
from stageprof_ui.columns.boxes import Boxes
from stageprof_ui.columns.sent import columns
from stageprof_ui.columns.tables import Tables
from stageprof_ui.columns.window import Colouring
from stageprof_ui.palette import GIL_COLOURS

logger = logging.getLogger("stageprof")

#: Boxes in a window that are sent as they are; of more, the share of each pixel.
NEAR: Final = 40_000
#: Answers that are kept: several browsers often begin with the same question.
_KEPT: Final = 16
#: The largest screens, and a line for each of their pixels.
_WIDEST: Final = 10_000

#: Steps in which nobody is busy, as `browser/drawing.js` has them.
IDLE: Final = frozenset({"", "idle", "wait.thread", "wait.resource"})

Answer = dict[str, Any]


class Question(msgspec.Struct, frozen=True):
    """What a browser wants to know of some rows in a window of time."""

    kind: Literal["picture", "point", "sums"]
    #: for each line of the picture the rows that it adds up
    lines: list[list[int]]
    #: from and to in units; of a point, what may be meant by it
    window: tuple[float, float]
    #: pixels
    width: int = 1
    #: how boxes are coloured, and which are selected: of a stage, of layers, or none at all
    mode: Literal["layer", "stage", "gil"] = "layer"
    stage: str = ""
    layers: list[int] | None = None
    none: bool = False
    #: of sums: whether what only waits is left out
    busy: bool = False


class Far:
    """The boxes of a recording, asked by any number of browsers.

    Args:
        recording: has the keys of their tasks.
        boxes: all of them.
        tables: what names and colours them.
    """

    def __init__(self, recording: Recording, boxes: Boxes, tables: Tables) -> None:
        self.boxes = boxes
        self._recording, self._tables = recording, tables
        self._answer: Callable[[bytes], Answer] = lru_cache(_KEPT)(self._answered)

    def answer(self, text: str) -> Answer:
        """The answer to a `Question` in JSON; one of kind "none" to what is none."""
        try:
            # As text, for lists cannot be looked up.
            return self._answer(text.encode())
        except ValueError:
            return {"kind": ["none"]}
        except Exception:  # the browser waits for an answer before it asks again
            logger.exception("a question of a page has no answer")
            return {"kind": ["none"]}

    def _answered(self, text: bytes) -> Answer:
        asked = msgspec.json.decode(text, type=Question)
        _check(asked, len(self.boxes.rows))
        return {"picture": self._picture, "point": self._point, "sums": self._sums}[asked.kind](
            asked
        )

    def _picture(self, asked: Question) -> Answer:
        rows = sorted({row for line in asked.lines for row in line})
        begin, end = asked.window
        margin = end - begin  # what comes next is often beside this
        for more in (margin, 0.0):
            wide = begin - more, end + more
            if (near := window.within(self.boxes, rows, *wide, NEAR)) is not None:
                return {"kind": ["boxes"], "from": [wide[0]], "to": [wide[1]]} | columns(near)
        drawn = window.picture(
            self.boxes, self._colouring(asked), asked.lines, asked.window, asked.width
        )
        return {"kind": ["picture"], "group": [drawn.group.ravel()], "share": [drawn.share.ravel()]}

    def _point(self, asked: Question) -> Answer:
        begin, end = asked.window
        rows = [row for line in asked.lines for row in line]
        found = window.nearest(self.boxes, rows, (begin + end) / 2, (end - begin) / 2)
        if found is None:
            return {"kind": ["none"]}
        row, i = found
        one = window.only(self.boxes, row, i)
        told = {"kind": ["box"], "row": [row]} | columns(one)
        run = int(one.run[0])
        return told | self._story(run) if run >= 0 else told

    def _story(self, run: int) -> Answer:
        """A task's key, what it waited for, and the keys of what it needed."""
        needs = self._recording.timeline.depends
        on = needs.on[needs.first[run] : needs.first[run + 1]][:_TOLD]
        key, *needed = self._keys([run, *on.tolist()])
        told = story.one(self._recording, self.boxes.unit_ns, run).columns()
        more = int(needs.first[run + 1] - needs.first[run]) - len(on)
        return told | {"key": [key], "needed": [needed], "more": [more]}

    def _keys(self, runs: list[int]) -> list[str]:
        keys = self._recording.store.keys(self._recording.timeline.runs["key"][runs])
        return [safe(key, limit=200) for key in keys]

    def _sums(self, asked: Question) -> Answer:
        rows = [row for line in asked.lines for row in line]
        found = window.sums(self.boxes, self._colouring(asked), rows, asked.window)
        by = [(self._name(layer, step), n, units) for layer, step, n, units in found.parts]
        told = {"count": found.count, "busy": found.busy, "by": by[:_TOLD]}
        return {"kind": ["sums"], "sums": [json.dumps(told)]}

    def _name(self, layer: int, step: int) -> str:
        return self._tables.layers[layer].name or self._tables.steps[step].name or "idle"

    def _colouring(self, asked: Question) -> Colouring:
        """As `Selection.grouping` and `Selection.filter` in browser/selection.js have it."""
        tables = self._tables
        steps = [step.name for step in tables.steps]
        other = len(tables.palettes[asked.mode]) - 1
        by_step, by_task = [other] * len(steps), [0]
        if asked.mode == "stage":
            by_step = [tables.stages.index(step.stage) for step in tables.steps]
        elif asked.mode == "layer":
            by_task = [layer.group for layer in tables.layers]
        else:
            by_task = [(tenth + 1) // 2 for tenth in range(2 * len(GIL_COLOURS))]
        wanted = [
            (not asked.stage or step.stage == asked.stage)
            and not (asked.busy and step.name in IDLE)
            for step in tables.steps
        ]
        return Colouring(
            np.array(by_step, np.uint8),
            np.array(by_task, np.uint8),
            "" if asked.mode == "stage" else asked.mode,
            steps.index("compute"),
            np.array(wanted, np.bool_),
            self._chosen(asked),
        )

    def _chosen(self, asked: Question) -> Any:
        count = len(self._tables.layers)
        if asked.layers is None:
            return np.full(count, not asked.none)
        return np.isin(np.arange(count), asked.layers)


#: Parts of a sum, and needs of a task, that are told.
_TOLD: Final = 8


def _check(asked: Question, rows: int) -> None:
    """Nothing for a question that a page of ours asks.

    Raises:
        ValueError: for any other.
    """
    begin, end = asked.window
    known = all(0 <= row < rows for line in asked.lines for row in line)
    some = math.isfinite(begin) and math.isfinite(end) and begin < end
    if not (known and some and 0 < asked.width <= _WIDEST and len(asked.lines) <= _WIDEST):
        raise ValueError("no page asks that")


def conversation(far: Far) -> tuple[ColumnDataSource, ColumnDataSource]:
    """Where the browser puts its questions, and where it finds the answers."""
    asked, told = ColumnDataSource(data={"question": [""]}), ColumnDataSource(data={})

    def answer(_attr: str, _old: Any, new: dict[str, Sequence[Any]]) -> None:
        number, question = (next(iter(new.get(name) or [""])) for name in ("number", "question"))
        told.data = far.answer(str(question)) | {"number": [number]}

    asked.on_change("data", answer)
    return asked, told
