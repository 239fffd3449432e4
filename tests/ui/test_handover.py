"""Everything before the first task: sums, order, pictures; and the same in a browser."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findings.crowded import CLIENT, Program, calls, ns, pieces
from stageprof.app import written
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store as Rows
from stageprof_runtime.event import MARK, SPAN
from stageprof_runtime.stage import CODE, STEP, STEPS
from stageprof_ui.columns import handover
from stageprof_ui.columns.treemap import squarified
from stageprof_ui.store import Store
from stageprof_ui.views.handover import view
from stageprof_ui.words import html
from ui.conftest import Watched

HOSTILE = '<img src=x onerror="window.owned=1">$$x$$ \x1b[31m'


def program(name: str = "sum", variable: str = "weights") -> Program:
    """Two steps of construction, an optimization, a dump, and tasks with an object in them."""
    made = Program()
    made.made(f"{name}-{'0' * 32}", 41)
    made.client("construction/build", 200, "/home/u/etl.py:41")
    made.client("optimization/expr", 100, name)
    made.client("serialization/graph.dump", 300)
    made.embedded(f"{name}-{'0' * 32}", variable=variable, type=variable, how=variable, dump=250.0)
    made.embedded(f"{name}-{'0' * 32}", number=2, variable="small", nbytes=200_000, dump=1.0)
    made.tasks(pieces(4, name), work=10)
    return made


# -- the way of a graph -------------------------------------------------------------------------


def test_the_steps_follow_one_another_from_left_to_right() -> None:
    facts = handover.way(program().recording())
    rows = facts["steps"]
    names = [row["step"] for row in rows]
    assert names == [name for name in handover.STEPS if name in names]
    assert {"build", "expr", "graph.dump"} <= set(names)
    assert rows[0]["left"] == 0
    for row, after in pairwise(rows):
        assert after["left"] == pytest.approx(row["left"] + row["width"], abs=0.01)
    assert rows[-1]["left"] + rows[-1]["width"] == pytest.approx(100, abs=0.01)


def test_what_was_waited_for_is_the_sum_of_the_steps() -> None:
    recording = program().recording()
    frame = handover.steps(recording)
    assert frame["wall_s"].sum() == pytest.approx(0.6, abs=0.01)
    assert handover.way(recording)["waited"] == "600 ms"


def test_bytes_that_others_compress_are_not_the_graphs() -> None:
    made = program()
    made.client("serialization/compress", 50)
    made.client("serialization/decompress", 70)
    steps = set(handover.steps(made.recording())["step"])
    assert "compress" in steps  # by the client, which sends graphs
    assert "decompress" not in steps  # by the client: a result


def test_every_step_of_the_way_is_one_of_the_vocabulary() -> None:
    assert set(handover.STEPS) <= {step for _, step in STEPS}


def test_a_row_for_each_graph() -> None:
    made = program()
    made.tasks(calls(3), work=5)
    frame = handover.graphs(made.recording())
    assert frame["tasks"].tolist() == [4, 3]
    assert frame["line"].tolist() == ["etl.py:99", "etl.py:99"]


# -- lines and passes ---------------------------------------------------------------------------


def test_a_line_is_as_long_as_what_it_made_took() -> None:
    frame = handover.lines(program().recording())
    mine = frame[frame["made at"] == "etl.py:41"]
    assert mine["construction_s"].item() == pytest.approx(0.2, abs=0.01)
    facts = handover.bars(frame)
    assert facts["rows"][0]["line"] == "etl.py:41"
    assert facts["rows"][0]["construction"] + facts["rows"][0]["optimization"] == pytest.approx(100)


def test_what_the_event_loop_imports_to_start_a_cluster_is_no_lines() -> None:
    made, loop = program(), 8
    made.rows[CLIENT].append((MARK, ns(0), "loop thread", str(loop)))
    step = CODE["construction/import"]
    made.rows[CLIENT].append((SPAN, step, ns(0), ns(150), loop, "distributed.dashboard", 0))
    recording = made.recording()
    assert recording.stages()["busy_s"]["construction"] == pytest.approx(0.35, abs=0.01)
    assert handover.lines(recording)["construction_s"].sum() == pytest.approx(0.2, abs=0.01)
    assert handover.way(recording)["waited"] == "600 ms"


def test_lines_that_have_no_room_are_counted() -> None:
    frame = pd.DataFrame(
        {"made at": list("abcd"), "construction_s": [1.0, 4.0, 0.0, 2.0], "optimization_s": 0.0}
    )
    facts = handover.bars(frame, most=2)
    assert [row["line"] for row in facts["rows"]] == ["b", "d"]
    assert facts["left_out"] == 1


def test_passes_are_summed_by_what_they_went_through() -> None:
    made = program()
    made.client("optimization/expr", 50, "sum")
    made.client("optimization/lowlevel", 20)
    frame = handover.optimizations(made.recording())
    assert frame["pass"].tolist() == ["expr", "lowlevel"]
    assert frame["times"].tolist() == [2, 1]
    assert frame["seconds"].tolist() == pytest.approx([0.15, 0.02])


@pytest.mark.parametrize(
    "label", ["", "x y z", f"{STEP['expr']} -1 2", f"{STEP['expr']} 1", "9" * 5000]
)
def test_what_an_optimizer_made_is_told_and_nonsense_is_not(label: str) -> None:
    made = program()
    for text in (f"{STEP['expr']} 1200 24", f"{STEP['expr']} 7 7", label):
        made.rows[CLIENT].append((MARK, ns(1), "optimized", text))
    passes = handover.optimization(made.recording())["passes"]
    assert [(p["before"], p["after"]) for p in passes] == [("1,200", "24")]


# -- objects ------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=60))
def test_areas_are_as_the_weights_and_fill_the_rectangle(weights: list[float]) -> None:
    weights = sorted(weights, reverse=True)
    found = squarified(weights, 3.0, 1.0)
    total = sum(weights)
    assert len(found) == len(weights)
    for rectangle, weight in zip(found, weights, strict=True):
        assert rectangle.width * rectangle.height == pytest.approx(3 * weight / total, abs=1e-6)
        assert -1e-9 <= rectangle.x <= rectangle.x + rectangle.width <= 3 + 1e-6
        assert -1e-9 <= rectangle.y <= rectangle.y + rectangle.height <= 1 + 1e-6


@given(st.lists(st.floats(1, 1e3), min_size=2, max_size=30))
def test_no_two_rectangles_overlap(weights: list[float]) -> None:
    found = squarified(sorted(weights, reverse=True), 3.0, 1.0)
    for i, a in enumerate(found):
        for b in found[:i]:
            wide = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
            high = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
            assert wide < 1e-6 or high < 1e-6


def test_equal_weights_are_squares() -> None:
    found = squarified([1.0] * 12, 4.0, 3.0)
    assert [(r.width, r.height) for r in found] == [pytest.approx((1, 1))] * 12


def test_nothing_is_no_rectangle() -> None:
    assert squarified([], 3.0, 1.0) == []


def test_objects_are_drawn_by_bytes_or_by_seconds_the_largest_first() -> None:
    table = handover.objects(program().recording())
    by_bytes = handover.treemap(table, "moved_bytes")
    assert by_bytes["variable"].tolist() == ["weights", "small"]
    area = (by_bytes["right"] - by_bytes["left"]) * (by_bytes["top"] - by_bytes["bottom"])
    moved = table.sort_values("moved_bytes", ascending=False)["moved_bytes"]
    assert area.tolist() == pytest.approx((moved / moved.sum()).tolist())
    table["total_s"] = [0.0, 2.0]
    assert len(handover.treemap(table, "total_s")) == 1


# -- nothing, and what acts on nobody -------------------------------------------------------------


def nothing() -> Recording:
    rows = Rows()
    rows.complete = True
    return Recording(rows)


def test_an_empty_recording_is_some_sentences() -> None:
    recording = nothing()
    lines, objects = handover.lines(recording), handover.objects(recording)
    texts = [
        html("handover", **handover.way(recording)),
        html("handover_lines", **handover.bars(lines)),
        html("handover_optimization", **handover.optimization(recording)),
    ]
    assert all("in this recording" in text for text in texts)
    assert len(handover.graphs(recording)) == len(lines) == len(objects) == 0


def test_an_empty_recording_is_one_sentence_on_its_page() -> None:
    store = Store(nothing())
    shown: list[Any] = list(view(store, store.stock()))
    (said,) = shown
    assert "No graph was made or handed over" in said.object


def test_hostile_names_are_text() -> None:
    made = program(HOSTILE, HOSTILE)
    recording = made.recording()
    texts = html("handover_optimization", **handover.optimization(recording))
    assert "<img" not in texts
    assert "&lt;img" in texts
    frame = handover.objects(recording)
    words = "".join("".join(frame[c]) for c in ("variable", "type", "how", "layer"))
    assert not re.search(r"[\x00-\x1f]", words)


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose objects, layers and types were named by an enemy."""
    made = program(HOSTILE, HOSTILE)
    page = tmp_path_factory.mktemp("report") / "hostile.html"
    written(made.recording(), page)
    return page


def test_hostile_objects_are_shown_and_run_nowhere(watched: Watched, hostile: Path) -> None:
    page = watched.open(hostile.as_uri())
    for name in ("handover", "layers"):
        page.evaluate(f"location.hash = '{name}'")
        page.wait_for_timeout(500)
    page.evaluate("location.hash = 'handover'")
    page.locator(".tabulator-cell", has_text="<img").first.wait_for()
    assert page.evaluate("window.owned") is None


def test_a_narrow_page_says_of_each_step_where_it_is(watched: Watched, hostile: Path) -> None:
    watched.page.set_viewport_size({"width": 450, "height": 900})
    page = watched.open(hostile.as_uri())
    page.evaluate("location.hash = 'handover'")
    first = page.locator(".way tbody th").first
    first.wait_for()
    assert first.inner_text().split("\n") == ["build", "construction, client"]
    button, title = page.locator("#sp-theme").bounding_box(), page.locator("h1").bounding_box()
    assert button["y"] < title["y"] + title["height"]


def test_the_treemap_is_of_bytes_or_of_seconds(watched: Watched, hostile: Path) -> None:
    page = watched.open(hostile.as_uri())
    page.evaluate("location.hash = 'handover'")
    by_bytes = rectangles(page)
    page.get_by_role("button", name="seconds of pickling").click()
    page.wait_for_timeout(300)
    by_seconds = rectangles(page)
    assert len(by_bytes) == len(by_seconds) == 2
    assert by_bytes != by_seconds


def rectangles(page: Any) -> list[float]:
    """Where the rectangles that are drawn end."""
    ends: list[float] = page.evaluate(
        "[...Bokeh.documents.flatMap((d) => [...d._all_models.values()])]"
        ".filter((m) => m.type === 'GlyphRenderer' && m.glyph.type === 'Quad')"
        ".flatMap((m) => Array.from(m.data_source.data.right))"
    )
    return ends
