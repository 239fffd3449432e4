"""Workers: what each took of memory, processor, network and disk; who was seen, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.findings.quantity import share, size
from stageprof_collectors.recording import Recording
from stageprof_collectors.tables.memory import Limits
from stageprof_collectors.text import safe
from stageprof_ui.columns.series import LINES, Samples, Series, Unit, at_peak, natural


@dataclass(frozen=True)
class Quantity:
    """Something that is sampled: its name, title, unit, and what is said where there was none."""

    name: str
    title: str
    unit: Unit
    none: str


QUANTITIES: Final = (
    Quantity("memory.process", "Memory of the process", "size", "Memory was not sampled"),
    Quantity("memory.managed", "Managed memory: results Dask holds", "size", "No results held"),
    Quantity("memory.unmanaged", "Unmanaged memory: all else", "size", "No unmanaged memory"),
    Quantity("memory.spilled", "Spilled to disk", "size", "Nothing was spilled to disk"),
    Quantity("cpu.percent", "Processor (100 % is one CPU)", "percent", "No processor time"),
    Quantity("tasks.executing", "Tasks executing", "count", "No tasks were seen executing"),
    Quantity("tasks.ready", "Tasks ready, waiting for a thread", "count",
             "No tasks waited for a thread when looked at"),
    Quantity("network.read_bps", "Network in, of the machine", "rate", "Nothing came in"),
    Quantity("network.write_bps", "Network out, of the machine", "rate", "Nothing went out"),
    Quantity("disk.read_bps", "Disk reads, of the machine", "rate", "Nothing was read from disk"),
    Quantity("disk.write_bps", "Disk writes, of the machine", "rate",
             "Nothing was written to disk"),
)  # fmt: skip


@dataclass(frozen=True)
class Threshold:
    """A line across a chart: at which value what happens."""

    value: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A quantity of the processes that are drawn."""

    quantity: Quantity
    series: Sequence[Series]
    thresholds: Sequence[Threshold] = field(default=())

    @property
    def top(self) -> float:
        """Up to where it is drawn: a threshold shows where values came within half of it.

        A rate that was measured over an instant can be absurd; such a peak goes beyond the picture.
        """
        peak = self.peak
        if self.quantity.unit == "rate":
            usual = float(np.quantile(np.concatenate([one.value for one in self.series]), 0.98))
            peak = min(peak, 10 * usual) or peak
        near = [mark.value for mark in self.thresholds if mark.value <= 2 * peak]
        return 1.06 * max([peak, *near]) or 1.0

    @property
    def peak(self) -> float:
        """The highest value."""
        return max((one.peak for one in self.series), default=0.0)


def drawn(samples: Samples, most: int = LINES) -> list[int]:
    """The processes that are drawn: the workers with most memory, the scheduler, the client."""
    peaks = at_peak(samples.of("memory.process"), len(samples.processes))
    series = [one for quantity in QUANTITIES for one in samples.of(quantity.name)]
    known = {one.place for one in series if one.moves}
    workers = sorted((p for p in known if samples.role(p) == "worker"), key=lambda p: -peaks[p])
    others = sorted((p for p in known if samples.role(p) != "worker"), key=samples.role)
    return workers[:most] + others[-2:][::-1]


def charts(recording: Recording, samples: Samples, places: Sequence[int]) -> list[Chart]:
    """A chart for each quantity that was ever more than nothing, and seen more than once."""
    found = []
    for quantity in QUANTITIES:
        by_place = {one.place: one for one in samples.of(quantity.name)}
        mine = [by_place[p] for p in places if p in by_place and by_place[p].moves]
        if any(one.peak > 0 for one in mine):
            found.append(Chart(quantity, mine, _thresholds(recording, quantity.name, places)))
    return found


def of_drawn(samples: Samples, places: Sequence[int]) -> str:
    """Which workers are drawn, where the table has more, in a sentence."""
    sampled = {one.place for quantity in QUANTITIES for one in samples.of(quantity.name)}
    known, shown = (sum(samples.role(p) == "worker" for p in some) for some in (sampled, places))
    if (left := known - shown) <= 0:
        return ""
    which = "with most memory" if shown == LINES else "that were sampled more than once"
    rest = "The other worker is" if left == 1 else f"The other {left:,} workers are"
    return f"Drawn are the workers {which}. {rest} in the table below."


def silent(samples: Samples, shown: Sequence[Chart]) -> str:
    """What was sampled and is not drawn, for there was none, in a sentence."""
    names = {chart.quantity.name for chart in shown}
    none = [q for q in QUANTITIES if q.name not in names and samples.of(q.name)]
    absent = [q.none for q in none if all(one.peak <= 0 for one in samples.of(q.name))]
    return ". ".join(absent) + "." if absent else ""


# -- thresholds -----------------------------------------------------------------------------------


def _thresholds(recording: Recording, name: str, places: Sequence[int]) -> list[Threshold]:
    """Those of the quantity that Dask compares with them, if they are the same for all drawn."""
    limits = {recording.memory.limits[p] for p in places if p in recording.memory.limits}
    if len(limits) != 1:
        return []
    one = limits.pop()
    return [
        Threshold(fraction * one.limit, text) for fraction, text in _ends(one, name) if fraction > 0
    ]


def _ends(limits: Limits, name: str) -> list[tuple[float, str]]:
    if name == "memory.managed":
        return [(limits.target, "results are spilled")]
    if name == "memory.process":
        return [
            (limits.spill, "results are spilled"),
            (limits.pause, "a worker pauses"),
            (limits.terminate, "its nanny kills it"),
        ]
    return []


def of_thresholds(shown: Sequence[Chart]) -> str:
    """What the lines across charts are, in a sentence."""
    parts = []
    for chart in shown:
        seen = [mark.text for mark in chart.thresholds if mark.value <= chart.top]
        if seen:
            parts.append(f"{chart.quantity.title.partition(':')[0].lower()}: {', '.join(seen)}")
    return f"Dashed across, from below: {'; '.join(parts)}." if parts else ""


def of_peaks(shown: Sequence[Chart]) -> str:
    """Which values go beyond their charts, in a sentence."""
    beyond = [
        f"{chart.quantity.title.partition(',')[0].lower()} of {size(chart.peak)}/s"
        for chart in shown
        if chart.peak > chart.top
    ]
    said = "Measured over an instant, and beyond the picture"
    return f"{said}: {', '.join(beyond)}." if beyond else ""


def of_limits(recording: Recording) -> str:
    """What workers may take of memory, and at which parts of it what happens, in a sentence."""
    limits = sorted(set(recording.memory.limits.values()))
    if not limits:
        return "No memory limit is known." if recording.memory.places else ""
    if len(limits) > 1:
        low, high = limits[0].limit, limits[-1].limit
        return f"Workers have different memory limits, {size(low)} to {size(high)}."
    one = limits[0]
    parts = (
        ("of managed memory results are spilled", one.target),
        ("of all memory results are spilled", one.spill),
        ("it pauses", one.pause),
        ("its nanny kills it", one.terminate),
    )
    ends = [f"at {share(part)} {text}" for text, part in parts if part > 0]
    said = ", ".join(ends)
    return f"Each worker may take {size(one.limit)}" + (f": {said}." if said else ".")


# -- tables ---------------------------------------------------------------------------------------


def load(samples: Samples) -> pd.DataFrame:
    """One row per process: the highest of each quantity, and its mean processor use."""
    n = len(samples.processes)
    columns: dict[str, Any] = {
        "process": [process.label for process in samples.processes],
        "role": [safe(process.role) for process in samples.processes],
    }
    known = np.zeros(n, np.bool_)
    for quantity in QUANTITIES:
        column = np.full(n, np.nan)
        for one in samples.of(quantity.name):
            column[one.place], known[one.place] = one.peak, True
        columns[quantity.name] = column
    mean = np.full(n, np.nan)
    for one in samples.of("cpu.percent"):
        mean[one.place] = one.value.mean()
    frame = pd.DataFrame(columns | {"cpu.mean": mean})[known].round(1)
    return frame.sort_values("memory.process", ascending=False, ignore_index=True)


def workers(recording: Recording) -> pd.DataFrame:
    """One row per worker: who it is, what it did, and how well its clock is known."""
    frame = recording.workers()
    order = sorted(range(len(frame)), key=lambda i: natural(str(frame["name"].iloc[i])))
    frame = frame.iloc[order].reset_index(drop=True)
    instrumented = frame["instrumented"].astype(bool)
    reasons = zip(instrumented, frame["reason"], frame["left"], strict=True)
    return pd.DataFrame(
        {
            "name": [_text(v) for v in frame["name"]],
            "address": [_text(v) for v in frame["worker"]],
            "host": [_text(v) for v in frame["host"]],
            "pid": [f"{pid:.0f}" if pid > 0 else "" for pid in _numbers(frame["pid"])],
            "threads": _numbers(frame["threads"]),
            "cpus": _numbers(frame["cpus"]).replace(0, np.nan),
            "memory_limit": _numbers(frame["memory_limit"]).replace(0, np.nan),
            "tasks": _numbers(frame["tasks"]),
            "busy_s": _numbers(frame["busy_s"]),
            "batches_lost": _numbers(frame["batches_lost"]),
            "offset_ms": (1e3 * _numbers(frame["offset_s"])).round(3),
            "offset_error_ms": (1e3 * _numbers(frame["offset_error_s"])).round(3),
            "state": [_state(*facts) for facts in reasons],
        }
    )


def _numbers(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce").astype(np.float64)


def _text(value: object) -> str:
    return safe(value) if isinstance(value, str) else ""


def _state(seen: bool, reason: object, left: object) -> str:  # noqa: FBT001
    state = "seen" if seen else f"not seen: {safe(reason)}"
    return f"{state}; left" if left else state
