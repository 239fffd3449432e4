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
    Column("process", "Process", width=120),
    Column("role", "Role", width=76),
    Column("memory.process", "Memory", "size", "The most that the process took", 88),
    Column("memory.managed", "Managed", "size", "The most that Dask held results for", 96),
    Column("memory.unmanaged", "Unmanaged", "size", "The most of all else", 112),
    Column("memory.spilled", "Spilled", "size", "The most that lay on disk", 84),
    Column("cpu.mean", "CPU (%)", "count", "In the mean; 100 % is one CPU", 72),
    Column("cpu.percent", "CPU peak (%)", "count", "At its highest; 100 % is one CPU", 84),
    Column("tasks.executing", "Executing", "count", "Tasks at once, at most", 102),
    Column("tasks.ready", "Ready", "count", "Tasks waiting for a thread, at most", 76),
    Column("network.read_bps", "In/s", "size", "The most; of the whole machine", 76),
    Column("network.write_bps", "Out/s", "size", "The most; of the whole machine", 76),
    Column("disk.read_bps", "Read/s", "size", "The most; of the whole machine", 80),
    Column("disk.write_bps", "Written/s", "size", "The most; of the whole machine", 96),
)
_WORKERS: Final = (
    Column("name", "Worker", width=90),
    Column("address", "Address", width=158),
    Column("host", "Host", width=100),
    Column("pid", "Process", width=94),
    Column("threads", "Threads", "count", width=90),
    Column("cpus", "CPUs", "count", width=76),
    Column("memory_limit", "May take", "size", "Its memory limit", 96),
    Column("tasks", "Tasks", "count", width=76),
    Column("busy_s", "Busy", "seconds", "Seconds of its tasks, over all threads", 80),
    Column("offset_ms", "Clock (ms)", "count", "How far it is from the client's", 118),
    Column("offset_error_ms", "± (ms)", "count", "How well that is known", 72),
    Column("batches_lost", "Lost", "count", "Batches of events that did not arrive", 70),
    Column("state", "State", width=150),
)
