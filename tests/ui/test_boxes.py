"""Boxes are packed without overlap, and the picture of them is exact at any zoom."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replay.handmade import HandMade
from stageprof_collectors.account.union import union
from stageprof_collectors.recording import Recording
from stageprof_ui.columns.boxes import SUBROWS, Pile, Row, levels, picture
from stageprof_ui.columns.lines import lines
from stageprof_ui.columns.packing import ROUGH, rough, steps
from stageprof_ui.columns.timeline import boxes

SPANS = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 500)).map(lambda p: (p[0], p[0] + p[1])),
    max_size=60,
)
ROW = Row("thread", 0, "thread")


@given(SPANS)
def test_no_two_of_one_level_overlap_and_what_has_no_room_is_counted(
    spans: list[tuple[int, int]],
) -> None:
    level, left = levels([a for a, _ in spans], [b for _, b in spans])
    for i in range(SUBROWS):
        mine = sorted(s for s, at in zip(spans, level, strict=True) if at == i)
        assert all(a[1] <= b[0] for a, b in pairwise(mine))
    assert left == int((level < 0).sum())


def test_a_level_is_opened_only_when_all_others_are_busy() -> None:
    level, left = levels([0, 1, 2, 10], [5, 5, 3, 12])
    assert (level.tolist(), left) == ([0, 1, 2, 0], 0)


@given(SPANS)
def test_a_union_covers_what_its_parts_cover_once(spans: list[tuple[int, int]]) -> None:
    a, b = np.array(spans or np.zeros((0, 2)), np.int64).reshape(-1, 2).T
    start, stop = union(a, b)
    covered = {t for x, y in spans for t in range(x, y)}
    assert covered == {t for x, y in zip(start, stop, strict=True) for t in range(x, y)}
    assert (start[1:] > stop[:-1]).all()


@given(SPANS, st.integers(1, 40), st.floats(0, 9_000), st.floats(1, 9_000))
def test_the_share_of_each_pixel_is_the_time_that_boxes_fill_of_it(
    spans: list[tuple[int, int]], width: int, begin: float, length: float
) -> None:
    pile = Pile(0, 10**9)
    a, b = (
        (np.array(c, np.int64) * 1000 for c in zip(*_apart(spans), strict=True))
        if spans
        else (
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
        )
    )
    pile.add(ROW, a, b, np.arange(len(a)) % 3)
    boxes = pile.boxes()

    group, share = picture(boxes, boxes.step, [(0,)], (begin, begin + length), width)

    edges = np.linspace(begin, begin + length, width + 1)
    for p in range(width):
        parts = np.zeros(3)
        for i in range(len(boxes)):
            x, y = float(boxes.start[i]), float(boxes.start[i]) + float(boxes.length[i])
            parts[boxes.step[i]] += max(0.0, min(y, edges[p + 1]) - max(x, edges[p]))
        assert abs(share[0, p] - parts.sum() / (edges[p + 1] - edges[p])) < 1e-6
        if group[0, p] >= 0:
            assert parts[group[0, p]] >= parts.max() - 1e-6


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans that do not overlap one before."""
    out: list[tuple[int, int]] = []
    for a, b in sorted(spans):
        if not out or a >= out[-1][1]:
            out.append((a, b))
    return out


def test_days_fit_as_well_as_microseconds() -> None:
    day = 86_400 * 10**9
    pile = Pile(0, 4 * day)
    pile.add(ROW, np.array([0, 3 * day]), np.array([day, 3 * day + 1_000]), 1)
    boxes = pile.boxes()
    start, stop = boxes.seconds()
    assert boxes.unit_ns > 1_000
    assert abs(stop[0] - 86_400) < 1e-3
    assert abs(start[1] - 3 * 86_400) < 1e-3


def test_nothing_is_no_picture() -> None:
    boxes = Pile(0, 0).boxes()
    assert len(boxes) == 0
    assert boxes.offsets.tolist() == [0]


@given(st.lists(st.integers(-1, 2**31 - 1), max_size=50))
def test_steps_add_up_to_what_they_are_of(numbers: list[int]) -> None:
    column = np.array(numbers, np.int32)
    back = np.cumsum(steps(column), dtype=np.uint32).astype(np.int32)
    assert back.tolist() == numbers


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_a_rough_number_is_within_a_fifth_of_a_percent(numbers: list[int]) -> None:
    column = np.array(numbers, np.uint32)
    back = 2 ** (rough(column).astype(float) / ROUGH) - 1
    assert np.allclose(back, column, rtol=0.002, atol=0.01)


def stolen() -> Recording:
    """One task that was taken from the first worker, and ran on the second."""
    made = HandMade()
    graph = -1 - made.graph(0, 0, 0)
    there = made.run(0, 0, 100, cause=graph)
    waited = made.taken_back(0, 0, 40, cause=graph)
    ran = made.run(1, 40, 90, cause=waited, wanted=True)
    made.wait(0, 100, ran, 90)
    assert there >= 0
    return made.recording(100)


def test_a_task_that_was_taken_back_before_it_ran_has_no_line_of_its_own() -> None:
    labels = [line.label for line in lines(boxes(stolen()))]
    assert not [label for label in labels if "scheduler only" in label]


def test_a_task_that_was_taken_back_is_none_of_the_workers_that_had_it() -> None:
    assert stolen().workers()["tasks"].tolist() == [1, 1]
