"""Rectangles whose areas are weights and that are as square as can be: a treemap of one level.

The algorithm of Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Rectangle(NamedTuple):
    """A rectangle by its lower left corner and its sides."""

    x: float
    y: float
    width: float
    height: float


def squarified(weights: Sequence[float], width: float, height: float) -> list[Rectangle]:
    """A rectangle for each weight, which are positive and in descending order.

    They fill a rectangle of `width` x `height` from its lower left corner.
    """
    scale = width * height / sum(weights) if weights else 0.0
    left, areas = Rectangle(0.0, 0.0, width, height), [weight * scale for weight in weights]
    found: list[Rectangle] = []
    while areas:
        row = _row(areas, min(left.width, left.height))
        placed, left = _laid(row, left)
        found += placed
        areas = areas[len(row) :]
    return found


def _row(areas: Sequence[float], side: float) -> Sequence[float]:
    """As many areas as are more square beside each other along a side than one less."""
    n, total = 1, areas[0]
    worst = _worst(areas[0], areas[0], total, side)
    while n < len(areas):
        more = _worst(areas[0], areas[n], total + areas[n], side)
        if more > worst:
            break
        worst, total, n = more, total + areas[n], n + 1
    return areas[:n]


def _worst(largest: float, smallest: float, total: float, side: float) -> float:
    """How far from a square the longest of a row is: a ratio of sides, 1 or more."""
    square = (total / side) ** 2 if side > 0 else 0.0
    if not square or not smallest:
        return float("inf")
    return max(largest / square, square / smallest)


def _laid(row: Sequence[float], left: Rectangle) -> tuple[list[Rectangle], Rectangle]:
    """A row along the shorter side of what is left, and what is left then."""
    total = sum(row)
    upright = left.width >= left.height
    side = left.height if upright else left.width
    # Rounding must not lead out of what is left.
    thick = min(total / side if side > 0 else 0.0, left.width if upright else left.height)
    found, at = [], left.y if upright else left.x
    for area in row:
        length = side * area / total
        found.append(
            Rectangle(left.x, at, thick, length)
            if upright
            else Rectangle(at, left.y, length, thick)
        )
        at += length
    if upright:
        return found, left._replace(x=left.x + thick, width=max(left.width - thick, 0.0))
    return found, left._replace(y=left.y + thick, height=max(left.height - thick, 0.0))
