"""Contention, threads and looks as columns, and the page that shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import EXAMPLES
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_runtime.stack import LIBRARY, PYTHON
from stageprof_ui.columns import icicle, profiles
from stageprof_ui.columns.icicle import ALL
from stageprof_ui.columns.series import Samples, Series
from stageprof_ui.store import Store as Shown
from stageprof_ui.views import profiles as page
from ui.acting import acting
from ui.observed import Observed

#: Bokeh 3.9 makes tables in a way that pandas 3.1 advises against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")


def looked() -> Observed:
    """Two prefixes: 300 ms in two lines of one, 100 ms in the other."""
    made = Observed(2)
    made.look("clean", "tidy", "/u/etl.py:7 tidy", PYTHON, 100)
    made.look("clean", "tidy", "/u/etl.py:7 tidy", PYTHON, 50, worker=1)
    made.look("clean", "tidy", "/u/etl.py:7 tidy", LIBRARY, 20)
    made.look("clean", "tidy", "/u/etl.py:9 strip", LIBRARY, 130)
    made.look("sum", "", "", LIBRARY, 100)
    return made


def test_boxes_lie_within_the_boxes_above_them() -> None:
    found = icicle.icicle(icicle.looks(looked().recording(1000)))
    boxes = found.boxes
    assert found.total == pytest.approx(0.4)
    rows: list[dict[Any, Any]] = boxes.to_dict("records")
    for box in rows:
        above = [
            other["path"]
            for other in rows
            if other["depth"] == box["depth"] - 1
            and other["left"] <= box["left"] + 1e-9
            and other["right"] >= box["right"] - 1e-9
        ]
        assert above == ([box["path"][:-1]] if box["depth"] else [])


def test_the_widest_box_of_each_is_first_and_named_by_its_line() -> None:
    boxes = icicle.icicle(icicle.looks(looked().recording(1000))).boxes
    lines = boxes[boxes["depth"] == 2].sort_values("left")
    assert lines["name"].tolist() == ["etl.py:7 tidy", "etl.py:9 strip", "(in no code of yours)"]
    assert (lines["right"] - lines["left"]).tolist() == pytest.approx([0.17, 0.13, 0.1])
    assert lines["looks"].tolist() == [3, 1, 1]
    assert "bytecode" in lines["kind"].iloc[0]


LOOKS = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.sampled_from(["", "f"]), st.sampled_from(["", "x.py:1 f"]),
        st.sampled_from([PYTHON, LIBRARY, "what"]), st.integers(0, 40),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


@settings(deadline=None, max_examples=EXAMPLES // 3)
@given(LOOKS)
def test_boxes_of_a_depth_do_not_overlap_and_hold_all_looks(
    looks: list[tuple[str, str, str, str, int]],
) -> None:
    made = Observed(1)
    for look in looks:
        made.look(*look)
    found = icicle.icicle(icicle.looks(made.recording(1000)))
    total = sum(ms for *_, ms in looks) / 1e3
    assert found.total == pytest.approx(total)
    for depth in range(4):
        mine = found.boxes[found.boxes["depth"] == depth].sort_values("left")
        assert float((mine["right"] - mine["left"]).sum()) == pytest.approx(total)
        left, right = mine["left"].to_numpy(float), mine["right"].to_numpy(float)
        assert (left[1:] >= right[:-1] - 1e-9).all()


def test_boxes_too_narrow_are_counted() -> None:
    made = Observed(1)
    for i in range(50):
        made.look(f"p{i}", "f", "x.py:1 f", PYTHON, 1 + i)
    found = icicle.icicle(icicle.looks(made.recording(1000)), most=20)
    assert (len(found.boxes), found.left_out) == (20, 180)


def test_each_role_has_its_own_boxes() -> None:
    made = looked()
    made.look("local", "f", "x.py:1 f", PYTHON, 30, worker=None)
    found = icicle.icicles(icicle.looks(made.recording(1000)))
    assert {role: round(one.total, 3) for role, one in found.items()} == {
        ALL: 0.43,
        "client": 0.03,
        "worker": 0.4,
    }


def contended() -> Observed:
    made = Observed(2)
    for at, value in ((0, 0.1), (500, 0.9), (1000, 0.2)):
        made.sample(at, "gil.contention", value, worker=0)
        made.sample(at, "gil.contention", value / 10, worker=1)
    made.sample(0, "gil.contention", float("nan"))
    return made


def test_contention_is_told_of_each_process() -> None:
    samples = Samples(contended().recording(1000))
    series = profiles.contention(samples)
    frame = profiles.by_process(samples, series)
    assert frame["process"].tolist() == ["worker 10", "worker 11"]
    assert frame[["least", "median", "most"]].to_numpy().round(6).tolist() == [
        [10.0, 20.0, 90.0],
        [1.0, 2.0, 9.0],
    ]
    assert "worker 10: 90 % at its highest" in profiles.of_contention(samples, series)


def test_time_on_a_thread_is_split_without_rest() -> None:
    made = contended()
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 1000, cause=-1 - graph, key="inc-1")
    made.run(1, 0, 200, cause=-1 - graph, key="dec-1")
    made.used(first, 600)
    found = profiles.threads(made.recording(1000))
    frame = found.frame.set_index("prefix")
    assert frame.loc["inc", "run_s"] == pytest.approx(1.0)
    assert frame.loc["inc", "cpu_s"] == pytest.approx(0.6)
    assert frame.loc["inc", "gil_s"] == pytest.approx(0.4)  # no more than it used no processor
    parts = frame[["cpu_s", "gil_s", "other_s"]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(frame["run_s"].to_numpy())
    assert found.measured


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400), st.integers(2, 50))
def test_a_thinned_line_keeps_its_peaks(values: list[float], most: int) -> None:
    value = np.array(values)
    t, kept = Series(0, np.arange(len(value), dtype=float), value).thinned(most)
    assert len(t) <= max(most, 2)
    assert (kept.max(), kept.min()) == (value.max(), value.min())
    assert (np.diff(t) > 0).all()


EMPTY = {
    "nothing": lambda: Recording(Store()),
    "no task": lambda: Observed(1).recording(10),
    "looks alone": lambda: looked().recording(10),
    "contention alone": lambda: contended().recording(10),
}


@pytest.mark.parametrize("which", EMPTY)
def test_the_page_shows_whatever_there_is(which: str) -> None:
    store = Shown(EMPTY[which]())
    assert page.view(store, store.stock()).get_root()


def test_what_texts_say_is_only_text() -> None:
    assert acting(page.view) == []
