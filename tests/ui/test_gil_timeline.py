"""The GIL in the time line: what is sent to the browser, and the picture that is drawn of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stageprof_collectors.profiles.holders import watched as looked_at
from stageprof_collectors.recording import Recording
from stageprof_runtime.stage import STEP
from stageprof_ui.columns import holds, lines, tables, timeline
from stageprof_ui.palette import GIL_COLOURS
from stageprof_ui.store import Store as Shown
from ui.conftest import Watched
from ui.observed import Observed, contended, turns

#: Bokeh 3.9 makes tables in a way that pandas 3.1 advises against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")


def test_turns_are_packed_for_the_rows_of_their_threads() -> None:
    recording = contended().recording(2000)
    boxes = timeline.boxes(recording)
    found = holds.holds(recording, boxes)
    rows = [i for i, row in enumerate(boxes.rows) if row.kind == lines.THREAD]
    assert np.flatnonzero(found.known).tolist() == rows
    ms = boxes.unit_ns / 1e6
    told = []
    for row in rows:
        own = slice(found.offsets[row], found.offsets[row + 1])
        start, length = found.start[own] * ms, found.length[own] * ms
        told.append([*zip(start, start + length, found.what[own].tolist(), strict=True)])
    assert told == [[(0, 1200, 0), (1200, 1800, 1)], [(0, 600, 1), (1200, 1800, 0)]]


def test_time_in_which_nobody_looked_is_not_known() -> None:
    made = Observed(1)
    made.run(0, 0, 1000, cause=-1 - made.graph(0, 0, 0))
    made.held(0, 300, 700)
    recording = made.recording(1000)
    found = holds.holds(recording, timeline.boxes(recording))
    assert found.what.tolist() == [holds.UNSEEN, 0, holds.UNSEEN]


def test_too_many_turns_leave_each_task_its_share() -> None:
    recording = contended().recording(2000)
    boxes = timeline.boxes(recording)
    found = holds.holds(recording, boxes, most=3)
    assert not found.known.any()
    assert len(found.start) == 0
    assert "4 intervals are too many to be sent" in found.said
    assert boxes.gil.max() == 4  # tenths plus one


def test_every_colour_of_the_gil_has_a_meaning() -> None:
    store = Shown(contended().recording(2000))
    (legend,) = (entries for mode, entries in tables.legends(store.tables) if mode == "gil")
    assert len({colour for colour, _ in legend}) == len(legend) == len(GIL_COLOURS)


# -- in a browser ---------------------------------------------------------------------------------


def colours(recording: Recording, row: int, window: tuple[float, float], width: int) -> Any:
    """Colour of each pixel of a row of the time line (-1: nothing), and whether that is clear."""
    boxes, known = timeline.boxes(recording), recording.timeline.gil
    line, origin, unit = boxes.rows[row], recording.timeline.region.start, boxes.unit_ns
    edges = (origin + np.linspace(*window, width + 1) * unit).astype(np.int64)
    own = slice(boxes.offsets[row], boxes.offsets[row + 1])
    task = boxes.step[own] == STEP["compute"]
    start = origin + boxes.start[own][task].astype(np.int64) * unit
    stop = start + boxes.length[own][task] * unit
    process = int(known.process[line.place])
    had, when = known.threads[process, line.thread], looked_at(recording)[process]
    sums = np.zeros((4, width))
    for box in zip(start, stop, strict=True):
        inside = np.clip(edges, *box)
        sums[0] += np.diff(inside)
        sums[1] += np.diff(np.clip(inside, *when))
        for i, total in ((2, had.held), (3, had.waited)):
            sums[i] += total.between(inside[:-1], inside[1:])
    return _coloured(*sums, pixel=float(edges[1] - edges[0]))


def _coloured(whole: Any, seen: Any, held: Any, waited: Any, *, pixel: float) -> Any:
    held, waited = held / np.maximum(seen, 1), waited / np.maximum(seen, 1)
    fifth = 1 + np.minimum(np.floor(5 * waited + 1e-6), 4)
    colour = np.where(waited >= 0.2, fifth, np.where(held + waited < 0.2, 6, 1))
    colour = np.where(seen > whole - seen, colour, 0)
    near = (np.abs(waited - np.arange(0.2, 1, 0.2)[:, None]) < 0.02).any(axis=0)
    near |= (np.abs(held + waited - 0.2) < 0.02) | (np.abs(2 * seen - whole) < 0.05 * whole)
    return np.where(whole > 0, colour, -1), ~near & (whole > 0.05 * pixel)


_GROUPS = (
    "([row, window, width]) => { const app = Object.values(stageprof.apps)[0];"
    "const boxes = Object.values(app.boxes)[0], group = app.selection.grouping('gil');"
    "return Array.from(stageprof.shares(boxes, [row], group, () => true, window, width).group); }"
)


def test_the_picture_is_made_of_exact_sums_at_every_zoom(
    watched: Watched, taking_turns: str
) -> None:
    recording = turns().recording(2000)
    boxes = timeline.boxes(recording)
    shown = watched.open(f"{taking_turns}#timeline")
    rows = np.flatnonzero(holds.holds(recording, boxes).known).tolist()
    assert len(rows) == 2
    end = recording.wall * 1e9 / boxes.unit_ns
    for window in ((0.0, end), (0.0, 0.2 * end), (0.51 * end, 0.53 * end)):
        for row in rows:
            wanted, clear = colours(recording, row, window, 200)
            got = np.array(shown.evaluate(_GROUPS, [row, list(window), 200]))
            assert clear.sum() > 100
            assert len(set(wanted[clear].tolist())) > 2
            assert (got[clear] == wanted[clear]).mean() > 0.99


def test_a_task_tells_what_it_had_of_the_gil(watched: Watched, taking_turns: str) -> None:
    shown = watched.open(f"{taking_turns}#timeline")
    shown.wait_for_function("document.documentElement.dataset.stageprofDrawn > 1")
    told = shown.evaluate(
        """() => { const d = Object.values(Object.values(stageprof.apps)[0].drawings)
        .find((d) => d.figure.name.startsWith("Tasks"));
        return d.lines.filter((l) => d.boxes.rows[l.rows[0]].n > 5).map((line) =>
          d.describe({ line, row: d.boxes.rows[line.rows[0]], index: 5 })); }"""
    )
    said = [dict(pairs[1:]).get("GIL", "") for pairs in told]
    assert all(text.startswith("waited ") and ", held it " in text for text in said[:2])
    assert said[-1] == ""
