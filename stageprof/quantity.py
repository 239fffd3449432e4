"""Numbers with their units, in as many digits as a reader needs."""

from __future__ import annotations

import math


def seconds(value: float) -> str:
    """A duration: `0.3 ms`, `153 ms`, `2.31 s`, `23.1 s`, `3 min 12 s`, `1 h 04 min`."""
    if not math.isfinite(value):
        return "?"
    if value < 0.9995:
        return _milliseconds(value * 1e3)
    if value < 59.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    return _minutes(round(value))


def _milliseconds(value: float) -> str:
    if value < 0.05:
        return "<0.1 ms" if value > 0 else "0 s"
    return f"{value:.1f} ms" if value < 9.95 else f"{value:.0f} ms"


def _minutes(value: int) -> str:
    minutes, rest = divmod(value, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def share(value: float) -> str:
    """A part of the whole: `36 %`, `<1 %`, `0 %`."""
    if not math.isfinite(value):
        return "?"
    if 0 < value < 0.005:
        return "<1 %"
    return f"{value * 100:.0f} %"


def count(value: int, noun: str) -> str:
    """A number of things: `1 task`, `1,204 tasks`."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"
