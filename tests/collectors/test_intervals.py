"""Interval algebra, by its laws."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from stageprof_collectors.account.intervals import (
    Segment,
    clip,
    common,
    gaps,
    innermost,
    length,
    paint,
)

spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5)).map(
        lambda t: (min(t[0], t[1]), max(t[0], t[1]), t[2])
    ),
    max_size=12,
)


def disjoint(segments: list[Segment[int]]) -> bool:
    """Whether segments are in order, not empty, and do not overlap."""
    ordered = all(a[1] <= b[0] for a, b in itertools.pairwise(segments))
    return ordered and all(start < stop for start, stop, _ in segments)


def covered(segments: list[Segment[int]]) -> set[int]:
    """The instants that segments cover."""
    return {t for start, stop, _ in segments for t in range(start, stop)}


@given(spans)
def test_innermost_covers_what_the_spans_cover_once(some: list[Segment[int]]) -> None:
    flat = innermost(some)

    assert disjoint(flat)
    assert covered(flat) == covered(some)
    assert length(flat) == len(covered(some))


@given(spans)
def test_innermost_shows_the_span_that_began_last(some: list[Segment[int]]) -> None:
    for start, stop, value in innermost(some):
        for t in range(start, stop):
            over = [s for s in some if s[0] <= t < s[1]]
            latest = max(s[0] for s in over)
            assert value in {s[2] for s in over if s[0] == latest}


@given(spans, st.integers(0, 60), st.integers(0, 60))
def test_clip_and_gaps_share_out_a_window(some: list[Segment[int]], a: int, b: int) -> None:
    start, stop = min(a, b), max(a, b)
    flat = innermost(some)
    inside, outside = clip(flat, start, stop), gaps(flat, start, stop)

    assert disjoint([s for s in inside if s[0] < s[1]])
    assert length(inside) + sum(y - x for x, y in outside) == stop - start
    assert covered(inside) == covered(flat) & set(range(start, stop))


@given(spans, spans)
def test_what_two_lists_have_in_common_is_counted_once(
    some: list[Segment[int]], more: list[Segment[int]]
) -> None:
    assert common(innermost(some), innermost(more)) == len(covered(some) & covered(more))


@given(spans, spans, st.integers(0, 60), st.integers(0, 60))
def test_paint_leaves_no_gap_and_keeps_precedence(
    upper: list[Segment[int]], lower: list[Segment[int]], a: int, b: int
) -> None:
    start, stop = min(a, b), max(a, b)
    if start == stop:
        return
    first, second = innermost(upper), innermost(lower)
    painted = paint(start, stop, [first, second], -1)

    assert disjoint(painted)
    assert covered(painted) == set(range(start, stop))
    for x, y, value in painted:
        for t in range(x, y):
            above = [s[2] for s in first if s[0] <= t < s[1]]
            below = [s[2] for s in second if s[0] <= t < s[1]]
            assert value == [*above, *below, -1][0]


def test_a_nested_span_is_subtracted_from_the_one_around_it() -> None:
    assert innermost([(0, 10, "outer"), (2, 5, "inner")]) == [
        (0, 2, "outer"),
        (2, 5, "inner"),
        (5, 10, "outer"),
    ]
