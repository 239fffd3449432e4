"""What a window shows of boxes that stay on the server: the picture that the browser would draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stageprof_runtime.stage import STEP
from stageprof_ui.columns import window
from stageprof_ui.columns.boxes import Boxes, Pile, Row, picture
from stageprof_ui.columns.window import FULL, MUTED, NOTHING, Colouring

#: Lengths of boxes and of the gaps before them.
ROWS = st.lists(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 400)), max_size=40),
    min_size=1,
    max_size=5,
)
WINDOWS = st.tuples(st.floats(-500, 9_000), st.floats(1, 9_000)).map(lambda w: (w[0], sum(w)))
STEPS = 3


def made(rows: list[list[tuple[int, int]]]) -> Boxes:
    """Rows of boxes of three steps and two layers."""
    pile = Pile(0, 10**9)
    for i, row in enumerate(rows):
        ends = np.cumsum(np.array(row, np.int64).reshape(-1, 2).ravel()) * 1000
        start, stop = ends[::2], ends[1::2]
        n = np.arange(len(start))
        pile.add(Row(f"row {i}", 0, "thread"), start, stop, n % STEPS, layer=n % 2, run=n)
    return pile.boxes(["", "one"])


def colouring(*, steps: tuple[int, ...] = (0, 1, 2)) -> Colouring:
    """A group for each step."""
    return Colouring(
        np.arange(STEPS, dtype=np.uint8),
        np.zeros(1, np.uint8),
        "",
        STEP["compute"],
        np.isin(np.arange(STEPS), steps),
        np.ones(2, np.bool_),
    )


@given(ROWS, WINDOWS, st.integers(1, 50))
def test_every_pixel_is_that_of_the_cumulative_sums(
    rows: list[list[tuple[int, int]]], seen: tuple[float, float], width: int
) -> None:
    """Of every row, of all rows as one line, and of lines in any number."""
    boxes = made(rows)
    lines = [*([i] for i in range(len(rows))), list(range(len(rows)))] * 9
    group, share = picture(boxes, boxes.step, lines, seen, width)

    found = window.picture(boxes, colouring(), lines, seen, width)

    assert np.allclose(found.share / FULL, share, atol=1e-4)
    clear = share > 1e-3
    many = [sum(boxes.step[s] == g for s in range(len(boxes))) for g in range(STEPS)]
    if sum(n > 0 for n in many) == 1:
        assert (found.group[clear] == group[clear]).all()
    assert (found.group[share == 0] == NOTHING).all() or not len(boxes)


@given(ROWS, WINDOWS, st.integers(1, 50))
def test_what_is_not_selected_is_muted_where_nothing_else_is(
    rows: list[list[tuple[int, int]]], seen: tuple[float, float], width: int
) -> None:
    boxes = made(rows)
    lines = [list(range(len(rows)))]
    none = window.picture(boxes, colouring(steps=()), lines, seen, width)
    every = window.picture(boxes, colouring(), lines, seen, width)
    assert (none.share == every.share).all()
    assert set(none.group[every.group != NOTHING].tolist()) <= {MUTED}


def test_a_chunk_more_or_less_is_the_same_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = made([[(3, 7)] * 50, [(10, 1)] * 40])
    seen = (20.0, 330.0)
    whole = window.picture(boxes, colouring(), [[0], [1], [0, 1]], seen, 30)
    monkeypatch.setattr(window, "_CHUNK", 7)
    monkeypatch.setattr(window, "_LINES", 2)
    parts = window.picture(boxes, colouring(), [[0], [1], [0, 1]], seen, 30)
    assert (whole.group == parts.group).all()
    assert np.abs(whole.share.astype(int) - parts.share).max() <= 1


@given(ROWS, WINDOWS)
def test_the_boxes_of_a_window_are_all_that_lie_in_it(
    rows: list[list[tuple[int, int]]], seen: tuple[float, float]
) -> None:
    """Of the rows asked for, with at most one more of each; none if they are too many."""
    boxes = made(rows)
    asked = list(range(0, len(rows), 2))
    near = window.within(boxes, asked, *seen, most=10_000)
    assert near is not None
    for i in range(len(rows)):
        part = slice(boxes.offsets[i], boxes.offsets[i + 1])
        start, stop = boxes.start[part], boxes.start[part] + boxes.length[part]
        wanted = set(np.flatnonzero((start < seen[1]) & (stop > seen[0])).tolist())
        got = near.run[near.offsets[i] : near.offsets[i + 1]].tolist()
        assert wanted <= set(got) if i in asked else not got
        assert len(got) <= len(wanted) + 1 + int((stop == start).sum())
    if len(near) > 0:
        assert window.within(boxes, asked, *seen, most=len(near) - 1) is None


@given(ROWS, st.floats(0, 9_000), st.floats(0.5, 200))
@example([[(1, 0)]], 0.5, 0.5)  # just as far as it may be
def test_the_nearest_box_is_the_nearest(
    rows: list[list[tuple[int, int]]], t: float, slack: float
) -> None:
    boxes = made([[(gap, length + 1) for gap, length in row] for row in rows])
    start = boxes.start.astype(float)
    off = np.maximum(np.maximum(start - t, t - start - boxes.length), 0)
    found = window.nearest(boxes, range(len(rows)), t, slack)
    if found is None:
        assert not (off <= slack).any()
    else:
        assert off[found[1]] == off.min() <= slack
        one = window.only(boxes, *found)
        assert (one.start[0], one.run[0]) == (boxes.start[found[1]], boxes.run[found[1]])
        assert one.offsets[found[0]] == 0 < one.offsets[found[0] + 1]


@given(ROWS, WINDOWS)
def test_sums_count_each_box_as_far_as_it_is_in_the_window(
    rows: list[list[tuple[int, int]]], seen: tuple[float, float]
) -> None:
    boxes = made(rows)
    found = window.sums(boxes, colouring(steps=(0, 1)), range(len(rows)), seen)
    start, stop = boxes.start.astype(float), boxes.start + boxes.length.astype(float)
    inside = np.minimum(stop, seen[1]) - np.maximum(start, seen[0])
    mine = (inside > 0) & (boxes.step < 2)
    assert found.count == int(mine.sum())
    assert np.isclose(found.busy, inside[mine].sum())
    layers = {layer: units for layer, _, _, units in found.parts if layer}
    assert np.isclose(layers.get(1, 0.0), inside[mine & (boxes.layer == 1)].sum())


def test_tasks_take_the_group_of_their_layer() -> None:
    boxes = made([[(0, 5)] * 6])
    compute = replace(boxes, step=np.full(6, STEP["compute"], np.uint8))
    steps = STEP["compute"] + 1
    colours = Colouring(
        np.full(steps, 7, np.uint8),
        np.array([4, 5], np.uint8),
        "layer",
        STEP["compute"],
        np.ones(steps, np.bool_),
        np.array([True, False]),
    )
    assert colours.groups(compute).tolist() == [4, colours.count] * 3
    assert colours.groups(boxes).tolist()[0] == 7
