"""Interval algebra: pure functions on lists of `(start, stop, value)`, half open, in ns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import TypeVar

V = TypeVar("V")
W = TypeVar("W")
Segment = tuple[int, int, V]


def innermost(spans: Iterable[Segment[V]]) -> list[Segment[V]]:
    """At each instant the span that began last: disjoint segments, in order.

    Spans of one thread nest, so the one that began last is the innermost; where clocks make them
    overlap without nesting the later one wins. The segments cover what the spans cover.
    """
    ordered = sorted((s for s in spans if s[1] > s[0]), key=lambda s: (s[0], -s[1]))
    if all(before[1] <= after[0] for before, after in pairwise(ordered)):
        return ordered
    out: list[Segment[V]] = []
    open_: list[Segment[V]] = []
    now = 0
    for span in ordered:
        now = _close(open_, out, now, span[0])
        if open_ and span[0] > now:
            out.append((now, span[0], open_[-1][2]))
        now = span[0]
        open_.append(span)
    _close(open_, out, now, None)
    return out


def _close(open_: list[Segment[V]], out: list[Segment[V]], now: int, until: int | None) -> int:
    """Emit what the open spans still cover up to `until`, and drop those that end by then."""
    while open_ and (until is None or open_[-1][1] <= until):
        _, stop, value = open_.pop()
        if stop > now:
            out.append((now, stop, value))
            now = stop
    return now


def clip(segments: Sequence[Segment[V]], start: int, stop: int) -> list[Segment[V]]:
    """What of ordered, disjoint segments lies in [start, stop)."""
    first = bisect_right(segments, start, key=lambda s: s[1])
    last = bisect_left(segments, stop, key=lambda s: s[0])
    return [(max(a, start), min(b, stop), v) for a, b, v in segments[first:last]]


def gaps(segments: Sequence[Segment[V]], start: int, stop: int) -> list[tuple[int, int]]:
    """What of [start, stop) ordered, disjoint segments leave uncovered."""
    out = []
    now = start
    for a, b, _ in segments:
        if a > now:
            out.append((now, min(a, stop)))
        now = max(now, b)
        if now >= stop:
            break
    if now < stop:
        out.append((now, stop))
    return [(a, b) for a, b in out if b > a]


def paint(
    start: int, stop: int, layers: Iterable[Sequence[Segment[V]]], default: V
) -> list[Segment[V]]:
    """Cover [start, stop) with the first layer, its gaps with the next, and so on.

    What no layer covers is `default`. Layers are ordered and disjoint; so is the result, and it
    leaves no gap.
    """
    covered: list[Segment[V]] = []
    for layer in layers:
        if not layer:
            continue
        if not covered:
            covered = clip(layer, start, stop)
            continue
        more = [s for a, b in gaps(covered, start, stop) for s in clip(layer, a, b)]
        covered = sorted(covered + more, key=_begin) if more else covered
    if not covered:
        return [(start, stop, default)]
    rest = [(a, b, default) for a, b in gaps(covered, start, stop)]
    return sorted(covered + rest, key=_begin) if rest else covered


def _begin(segment: Segment[V]) -> int:
    return segment[0]


def common(these: Sequence[Segment[V]], those: Sequence[Segment[W]]) -> int:
    """Length of what lies in both of two lists of ordered, disjoint segments."""
    total, first = 0, 0
    for start, stop, _ in these:
        while first < len(those) and those[first][1] <= start:
            first += 1
        for a, b, _ in islice(those, first, None):
            if a >= stop:
                break
            total += min(b, stop) - max(a, start)
    return total


def length(segments: Iterable[Segment[V]]) -> int:
    """Sum of the lengths."""
    return sum(b - a for a, b, _ in segments)
