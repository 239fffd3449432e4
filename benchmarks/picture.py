"""A log-log plot as SVG, which no package of the base install draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 640
HEIGHT: Final = 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 110, 20, 50
#: Okabe and Ito's colours, which are told apart by everybody and on light and dark.
_COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")


class Line(NamedTuple):
    """What is drawn: a name, and y by x."""

    name: str
    points: Mapping[int, float]


class _Scale(NamedTuple):
    """From a number's logarithm to a place on the picture."""

    low: int
    high: int
    begin: float
    end: float

    def at(self, value: float) -> float:
        return self.begin + (log10(value) - self.low) / (self.high - self.low) * (
            self.end - self.begin
        )


def loglog(lines: Sequence[Line], x_label: str, y_label: str) -> str:
    """The picture; a grey line shows what doubles when the size does."""
    xs = _scale([x for line in lines for x in line.points], _LEFT, WIDTH - _RIGHT)
    ys = _scale([y for line in lines for y in line.points.values()], HEIGHT - _BOTTOM, _TOP)
    parts = [*_axes(xs, ys, x_label, y_label), *_lines(lines, xs, ys)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#777">'
        f"<title>{escape(y_label)} against {escape(x_label)}</title>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _scale(values: Sequence[float], begin: float, end: float) -> _Scale:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return _Scale(low, max(high, low + 1), begin, end)


def _axes(xs: _Scale, ys: _Scale, x_label: str, y_label: str) -> Iterator[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for power in range(xs.low, xs.high + 1):
        x = xs.at(10.0**power)
        yield _path([(x, _TOP), (x, bottom)], "#777", 0.3)
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{_power(power)}</text>'
    for power in range(ys.low, ys.high + 1):
        y = ys.at(10.0**power)
        yield _path([(_LEFT, y), (right, y)], "#777", 0.3)
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_power(power)}</text>'
    span = min(xs.high - xs.low, ys.high - ys.low)
    slope = [(xs.at(10.0 ** (xs.high - span)), ys.at(10.0 ** (ys.high - span))), (right, ys.end)]
    yield _path(slope, "#777", 1, dashed=True)
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>'
    height = (_TOP + bottom) / 2
    turned = f'transform="rotate(-90 16 {height:.1f})" text-anchor="middle"'
    yield f'<text x="16" y="{height:.1f}" {turned}>{escape(y_label)}</text>'


def _lines(lines: Sequence[Line], xs: _Scale, ys: _Scale) -> Iterator[str]:
    ends = sorted((ys.at([*line.points.values()][-1]), i) for i, line in enumerate(lines))
    place = float(_TOP)
    for end, i in ends:  # names stay apart where lines meet
        line, colour = lines[i], _COLOURS[i % len(_COLOURS)]
        points = [(xs.at(x), ys.at(y)) for x, y in sorted(line.points.items())]
        place = max(end + 4, place + 14)
        yield _path(points, colour, 2)
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
        x, name = points[-1][0] + 8, escape(line.name)
        yield f'<text x="{x:.1f}" y="{place:.1f}" fill="{colour}">{name}</text>'


def _path(
    points: Sequence[tuple[float, float]], colour: str, width: float, *, dashed: bool = False
) -> str:
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="4 4"' if dashed else ""
    return (
        f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'
    )


def _power(power: int) -> str:
    return f'10<tspan dy="-5" font-size="9">{power}</tspan>'
