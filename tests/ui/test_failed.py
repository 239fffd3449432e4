"""What raised is striped in the time line, and its story says so."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from findings.crews import Crewed
from stageprof.app import written
from stageprof_collectors.recording import Recording
from stageprof_ui.columns import failed, lines, timeline
from stageprof_ui.store import Store
from ui.conftest import Watched

#: Bokeh 3.9 makes tables in a way that pandas 3.1 advises against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")

HOSTILE = "<img src=x onerror=window.hacked=1>"


def failing(error: str = "ValueError") -> Recording:
    """On each of two workers a run of 100 ms that fails, and one that does not."""
    made = Crewed(2)
    made.fails(0, 300, "fetch-1", error)
    made.fails(0, 500, "fetch-2", status=0)
    made.fails(1, 400, "fetch-3")
    made.fails(1, 700, "kept-4", status=0)
    made.wait_for(0, 700, "kept-4")
    return made.recording(1000)


def test_boxes_of_runs_that_raised_are_told_with_their_exceptions() -> None:
    recording = failing()
    boxes = timeline.boxes(recording)
    found = failed.failed(recording, boxes)
    ms = boxes.unit_ns / 1e6
    on = {boxes.rows[row].label: i for i, row in enumerate(found.row)}
    told = [
        (found.start[i] * ms, found.length[i] * ms, found.words[found.said[i]])
        for label, i in on.items()
        if "thread" in label
    ]
    assert told == [(200, 100, "ValueError at etl.py:8"), (300, 100, "an exception")]
    assert found.more == 0
    assert "(2 runs)" in failed.sentence(recording, found)
    json.dumps(asdict(found))


def test_a_run_that_was_retried_says_so() -> None:
    made = Crewed(1)
    made.fails(0, 300, "fetch-1", "ValueError")
    made.fails(0, 500, "fetch-1", status=0)
    made.wait_for(0, 500, "fetch-1")
    recording = made.recording(1000)
    found = failed.failed(recording, timeline.boxes(recording))
    assert {found.words[said] for said in found.said} == {
        "ValueError at etl.py:8; it was run again"
    }


def test_more_boxes_than_are_marked_are_a_number() -> None:
    recording = failing()
    found = failed.failed(recording, timeline.boxes(recording), most=1)
    assert (len(found.row), found.more > 0) == (1, True)
    assert "are not marked" in failed.sentence(recording, found)


def test_where_nothing_raised_nothing_is_said() -> None:
    made = Crewed(1)
    made.fails(0, 300, "fetch-1", status=0)
    store = Store(made.recording(1000))
    assert store.tables.failed == failed.Failed()
    assert failed.sentence(store.recording, store.tables.failed) == ""


# -- in a browser ---------------------------------------------------------------------------------

_FIND = """() => Object.values(Object.values(stageprof.apps)[0].drawings)
  .find((d) => d.figure.name.startsWith("Tasks"))"""

#: Different colours of some pixels' columns within the line of a row, by the instants they are at.
_COLOURS = """([row, instants]) => {
  const d = (FIND)(), { image, dw, x } = d.image.data, [height, width] = image[0].shape;
  const line = d.lines.find((l) => l.rows.includes(row)), frame = d.frame;
  const perUnit = frame.height / (frame.y[1] - frame.y[0]);
  const from = Math.ceil((line.bottom - frame.y[0]) * perUnit) + 2;
  const to = Math.floor((line.top - frame.y[0]) * perUnit) - 2;
  return instants.map((t) => {
    const p = Math.floor((t - x[0]) / dw[0] * width), found = new Set();
    for (let y = from; y < to; y++) found.add(image[0][y * width + p]);
    return found.size;
  });
}""".replace("FIND", _FIND)

_STORY = """([row, t]) => {
  const d = (FIND)(), line = d.lines.find((l) => l.rows.includes(row));
  d.tap({ x: t, y: (line.top + line.bottom) / 2 });
  return d.panel.text;
}""".replace("FIND", _FIND)


def row_of(recording: Recording, worker: int) -> int:
    boxes = timeline.boxes(recording)
    threads = [i for i, row in enumerate(boxes.rows) if row.kind == lines.THREAD]
    return threads[worker]


def test_what_raised_is_striped_and_its_story_says_what(watched: Watched, tmp_path: Path) -> None:
    recording = failing()
    written(recording, tmp_path / "failed.html")
    page = watched.open(f"{(tmp_path / 'failed.html').as_uri()}#timeline")
    page.get_by_text("Striped: what raised an exception (2 runs).").wait_for()
    row = row_of(recording, 0)
    assert page.evaluate(_COLOURS, [row, [0.25, 0.45]]) == [3, 1]
    assert "ValueError at etl.py:8" in page.evaluate(_STORY, [row, 0.25])
    assert "raised" not in page.evaluate(_STORY, [row, 0.45])
    assert "an exception" in page.evaluate(_STORY, [row_of(recording, 1), 0.35])


def test_one_row_per_process_and_the_first_page_have_it_too(
    watched: Watched, tmp_path: Path
) -> None:
    recording = failing(HOSTILE)
    written(recording, tmp_path / "failed.html")
    page = watched.open((tmp_path / "failed.html").as_uri())
    page.get_by_text(f"2 tasks failed ({HOSTILE}, fetch at etl.py:8)").wait_for()
    page.goto(f"{(tmp_path / 'failed.html').as_uri()}#timeline")
    page.get_by_role("button", name="one row per process").click()
    row = row_of(recording, 0)
    wait = f"([row, t]) => ({_COLOURS})([row, [t]])[0] === 3"
    page.wait_for_function(wait, arg=[row, 0.25])
    page.evaluate(_STORY, [row, 0.25])
    assert page.evaluate("window.hacked") is None
