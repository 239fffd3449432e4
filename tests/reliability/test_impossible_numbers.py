"""Numbers that cannot be: they are kept as they are, and no face, chart or JSON breaks on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

import stageprof
from reliability.test_outputs import strict
from stageprof.export import FORMATS
from stageprof.renderers import document
from stageprof_runtime.event import MEMORY, RUN, SAMPLE, SPAN
from ui.observed import Observed, contended, turns

BAD: Final = {
    "not a number": math.nan, "infinite": math.inf, "minus infinite": -math.inf,
    "enormous": 1.7e308, "negative": -1e18, "tiny": 5e-324,
}  # fmt: skip
EDGES: Final = (-(2**63), -1, 0, 2**62, 2**63 - 1)

TABLES: Final = (
    "stages", "steps", "computations", "layers", "tasks", "objects", "samples", "workers",
    "findings_frame", "critical_path", "coverage", "innocence", "lines", "gil",
    "places",
)  # fmt: skip


def spoiled(made: Observed, change: Callable[[tuple[Any, ...], int], tuple[Any, ...]]) -> Observed:
    """Rows changed, each with its running number."""
    number = 0
    for rows in made._rows.values():
        for i, row in enumerate(rows):
            rows[i], number = change(row, number), number + 1
    return made


def show_everything(made: Observed, folder: Path, *, pages: bool = True) -> stageprof.Recording:
    """Every table, every form, all pages; pytest makes an error of each warning."""
    recording = stageprof.Recording.of(made.recording(2000))
    for table in TABLES:
        assert getattr(recording, table)() is not None
    assert recording._repr_html_()
    assert recording._repr_markdown_()
    assert str(recording)
    strict(document.text(recording))
    if pages:
        recording.report(folder / "r.html")
        assert "This page cannot be shown" not in (folder / "r.html").read_text("utf-8")
    for form in ("csv", "perfetto"):
        FORMATS[form].write(recording, folder / form)
    strict((folder / "perfetto").read_text())
    stages = recording.stages()
    assert stages["wall_s"].sum() == pytest.approx(recording.wall)
    assert (stages["wall_s"] >= 0).all()
    return recording


def each_by_night(values: Iterable[Any]) -> list[Any]:
    """All of them together every time, one by one by night."""
    values = list(values)
    return [values, *(pytest.param([value], marks=pytest.mark.nightly) for value in values)]


@pytest.mark.parametrize("kinds", each_by_night(BAD), ids=str)
def test_a_sample_that_cannot_be_breaks_no_face(kinds: list[str], tmp_path: Path) -> None:
    """T24: every second number that was sampled, in charts, tables, strict JSON and a trace."""

    def change(row: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        value = BAD[kinds[number // 2 % len(kinds)]]
        return (*row[:3], value) if row[0] == SAMPLE and number % 2 else row

    made = contended()
    made.took(0, 300, 100, 50, 20)
    for name in (
        "worker.cpus",
        "worker.cpus_usable",
        "worker.host_memory",
        "loop.lag",
        "gil.waiting",
        "cpu",
        "memory",
    ):
        for at in (10, 400, 900, 1500):
            made.sample(at, name, 1.0, 0)
            made.sample(at + 1, name, 1.0, 0)
    recording = show_everything(spoiled(made, change), tmp_path)
    values = recording.samples()["value"]
    assert all(
        values.isna().any() if kind == "not a number" else (values == BAD[kind]).any()
        for kind in kinds
    )


@pytest.mark.parametrize("edges", each_by_night(EDGES), ids=str)
def test_a_time_that_cannot_be_breaks_no_face(edges: list[int], tmp_path: Path) -> None:
    """T24: starts and ends of tasks and spans at the edges of 64 bits, negative ones included."""

    def change(row: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        if row[0] not in (RUN, SPAN, MEMORY) or number % 5:
            return row
        field = 2 + number % 3
        return (*row[:field], edges[number // 5 % len(edges)], *row[field + 1 :])

    show_everything(spoiled(turns(), change), tmp_path, pages=len(edges) == 1)


def test_events_out_of_order_give_the_same_account(tmp_path: Path) -> None:
    """T24: rows of a place in any order; what they say is the same."""
    plain = stageprof.Recording.of(turns().recording(2000))
    made = turns()
    for rows in made._rows.values():
        rows.reverse()
    recording = show_everything(made, tmp_path, pages=False)
    assert recording.stages()["wall_s"].tolist() == pytest.approx(plain.stages()["wall_s"].tolist())
    assert sorted(recording.tasks()["key"]) == sorted(plain.tasks()["key"])
