"""Workers and memory: what each process took over time, what went between them, who was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import panel as pn

from stageprof_ui.canvas import Stock
from stageprof_ui.columns import coverage, workers
from stageprof_ui.columns.series import Samples
from stageprof_ui.columns.workers import Chart
from stageprof_ui.store import Store
from stageprof_ui.views.curves import (
    Curves,
    Pen,
    across,
    choice,
    chooser,
    curves,
    grid,
    pens,
    whole_run,
)
from stageprof_ui.views.html import html
from stageprof_ui.views.table import Column, table
from stageprof_ui.views.transfers import transfers


def view(store: Store, stock: Stock) -> pn.Column:
    """Charts of all processes, transfers, the list of workers, and coverage."""
    samples = store.made(Samples)
    return pn.Column(
        *_load(store, stock, samples),
        *transfers(store, stock, samples.names),
        *_list(store),
        html("workers_coverage", store.made(coverage.coverage)),
        sizing_mode="stretch_width",
    )


def _load(store: Store, stock: Stock, samples: Samples) -> list[Any]:
    places = workers.drawn(samples)
    shown = workers.charts(store.recording, samples, places)
    if not shown:
        text = "Memory and load were sampled once at most: the run was too short for pictures."
        none = html("workers_none", {"heading": "Memory and load", "text": text})
        numbers = workers.load(samples)
        return [none, table(numbers, _LOAD)] if len(numbers) else [none]
    drawn = pens(samples, places)
    figures = [_chart(stock, chart, drawn) for chart in shown]
    buttons = chooser(drawn, figures)
    return [
        html("workers", _facts(store, samples, shown, places)),
        choice(buttons, whole_run(stock)),
        grid([one.plot for one in figures]),
        table(workers.load(samples), _LOAD),
    ]


def _facts(
    store: Store, samples: Samples, shown: Sequence[Chart], places: Sequence[int]
) -> dict[str, Any]:
    return {
        "limits": workers.of_limits(store.recording),
        "drawn": workers.of_drawn(samples, places),
        "silent": workers.silent(samples, shown),
        "thresholds": workers.of_thresholds(shown),
        "beyond": workers.of_peaks(shown),
    }


def _chart(stock: Stock, chart: Chart, drawn: Sequence[Pen]) -> Curves:
    what = chart.quantity
    one = curves(
        stock, drawn, chart.series, label=f"{what.title}, of each process over time",
        title=what.title, unit=what.unit, top=chart.top,
    )  # fmt: skip
    for mark in chart.thresholds:
        across(one, mark.value)
    return one


def _list(store: Store) -> list[Any]:
    frame = store.made(workers.workers)
    if not len(frame):
        text = "No cluster took part: tasks ran in the client's own process, or none ran."
        return [html("workers_none", {"heading": "Who took part", "text": text})]
    return [html("workers_list"), table(frame, _WORKERS)]


_LOAD: Final = (
    Column("process", "process", width=120),
    Column("role", "role", width=76),
    Column("memory.process", "memory", "size", "the most that the process took", 88),
    Column("memory.managed", "managed", "size", "the most that Dask held results for", 96),
    Column("memory.unmanaged", "unmanaged", "size", "the most of all else", 112),
    Column("memory.spilled", "spilled", "size", "the most that lay on disk", 84),
    Column("cpu.mean", "CPU (%)", "count", "in the mean; 100 % is one CPU", 72),
    Column("cpu.percent", "CPU peak (%)", "count", "at its highest; 100 % is one CPU", 84),
    Column("tasks.executing", "executing", "count", "tasks at once, at most", 102),
    Column("tasks.ready", "ready", "count", "tasks waiting for a thread, at most", 76),
    Column("network.read_bps", "in/s", "size", "the most; of the whole machine", 76),
    Column("network.write_bps", "out/s", "size", "the most; of the whole machine", 76),
    Column("disk.read_bps", "read/s", "size", "the most; of the whole machine", 80),
    Column("disk.write_bps", "written/s", "size", "the most; of the whole machine", 96),
)
_WORKERS: Final = (
    Column("name", "worker", width=90),
    Column("address", "address", width=158),
    Column("host", "host", width=100),
    Column("pid", "process", width=94),
    Column("threads", "threads", "count", width=90),
    Column("cpus", "CPUs", "count", width=76),
    Column("memory_limit", "may take", "size", "its memory limit", 96),
    Column("tasks", "tasks", "count", width=76),
    Column("busy_s", "busy", "seconds", "seconds of its tasks, over all threads", 80),
    Column("offset_ms", "clock (ms)", "count", "how far it is from the client's", 118),
    Column("offset_error_ms", "± (ms)", "count", "how well that is known", 72),
    Column("batches_lost", "lost", "count", "batches of events that did not arrive", 70),
    Column("state", "state", width=150),
)
