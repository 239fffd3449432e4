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


#: Up to which number of seconds a unit is used, and how many seconds it has.
_UNITS = ((0.9995, 1e-3, "ms"), (119.5, 1.0, "s"), (7170, 60.0, "min"), (math.inf, 3600.0, "h"))


def span(low: float, high: float) -> str:
    """An interval of durations in one unit: `5.4-6.0 s`, `up to 2.1 s`, `6.0 s`, `no time`."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "?"
    if not high:
        return "no time"
    unit, name = next((unit, name) for top, unit, name in _UNITS if high <= top)
    digits = 0 if high / unit >= (9.95 if name == "ms" else 99.5) else 1
    least, most = (f"{value / unit:.{digits}f}" for value in (low, high))
    if least == most:
        return f"{most} {name}"
    if not float(least):
        return f"up to {most} {name}"
    return f"{least}-{most} {name}"


def size(nbytes: float) -> str:
    """An amount of memory, in powers of ten as Dask prints it: `640 B`, `12.5 MB`, `182 MB`."""
    if not math.isfinite(nbytes):
        return "?"
    for name in ("B", "kB", "MB", "GB"):
        if nbytes < 999.5:
            digits = 0 if name == "B" or nbytes >= 99.95 else 1
            return f"{nbytes:.{digits}f} {name}"
        nbytes /= 1000
    return f"{nbytes:,.1f} TB"
