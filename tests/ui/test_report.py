"""The static report in a real browser: it draws, it is exact, it asks for nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stageprof
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import UsageError
from stageprof_runtime.stage import STEPS, Stage
from stageprof_ui.columns import lines as shown_lines
from stageprof_ui.columns import timeline
from stageprof_ui.columns.boxes import picture
from ui.conftest import Watched, overhang

Reported = Callable[[int], str]

#: The drawings of the page by the label of their figure.
_DRAWINGS = "Object.values(Object.values(stageprof.apps)[0].drawings)"
_TIMELINE = f"{_DRAWINGS}.find((d) => d.figure.name.startsWith('Tasks'))"


def test_every_page_draws_without_an_error_and_asks_for_nothing(
    watched: Watched, reported: Reported
) -> None:
    page = watched.open(reported(10_000))
    for link in page.locator("[data-sp-page]").all():
        link.click()
        name = link.get_attribute("data-sp-page")
        page.locator(f"[data-sp-view={name}]").wait_for()
        page.locator(f"[data-sp-page={name}][aria-current=page]").wait_for()


def test_the_picture_is_that_of_the_cumulative_sums(
    watched: Watched, reported: Reported, generated: Callable[[int], Path]
) -> None:
    """Dominant stage and busy share of every pixel, at several zooms."""
    recording = Recording.open(generated(10_000))
    boxes = timeline.boxes(recording)
    stages = list(Stage)
    group = np.array([stages.index(STEPS[s][0]) for s in boxes.step], np.uint8)
    page = watched.open(reported(10_000))
    lines = shown_lines.lines(boxes)
    rows = [list(line.rows) for line in lines[:6]]
    end = recording.wall * 1e9 / boxes.unit_ns
    for window in ((0.0, end), (0.3 * end, 0.4 * end), (0.5 * end, 0.5003 * end)):
        wanted, share = picture(boxes, group, rows, window, 300)
        drawn = page.evaluate(_SHARES, [rows, list(window), 300])
        for line, (got_group, got_share) in enumerate(drawn):
            assert np.allclose(got_share, share[line], atol=0.01)
            clear = share[line] > 0.02
            same = np.array(got_group)[clear] == wanted[line][clear]
            assert same.mean() > 0.995 if clear.any() else True


_SHARES = (
    "([rows, window, width]) => { const app = Object.values(stageprof.apps)[0];"
    "const boxes = Object.values(app.boxes)[0]; const group = app.selection.grouping('stage');"
    "return rows.map((r) => {"
    "const s = stageprof.shares(boxes, r, group, () => true, window, width);"
    "return [Array.from(s.group), Array.from(s.share)]; }); }"
)


def test_zooming_draws_again_and_finer(watched: Watched, reported: Reported) -> None:
    page = watched.open(f"{reported(10_000)}#timeline")
    _drawn(page)
    before = page.evaluate(
        f"(() => {{ const d = {_TIMELINE}; return d.window[1] - d.window[0]; }})()"
    )
    canvas = page.locator("[data-sp-view=timeline] .bk-Canvas").first
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.wheel(0, -800)
    page.wait_for_function(
        f"(before) => {{ const [a, b] = {_TIMELINE}.window; return b - a < before / 1.5; }}",
        arg=before,
    )


def _drawn(page: Any) -> None:
    page.wait_for_function(f"{_TIMELINE}?.drawn?.width > 0")


def test_pointing_at_a_task_names_it(
    watched: Watched, reported: Reported, generated: Callable[[int], Path]
) -> None:
    """The key, the layer and the seconds are those of the table of tasks."""
    tasks = Recording.open(generated(10_000)).tasks()
    page = watched.open(f"{reported(10_000)}#timeline")
    _drawn(page)
    run, x, y = page.evaluate(
        f"""(() => {{ const d = {_TIMELINE}; const line = d.lines[0];
        const row = d.boxes.rows[line.rows[0]]; const i = Math.floor(row.n / 2);
        const start = row.start[i] * d.boxes.unit, length = row.length[i] * d.boxes.unit;
        d.figure.x_range.setv({{start: start - 2 * length, end: start + 3 * length}});
        return [row.run[i], start + length / 2, (line.top + line.bottom) / 2]; }})()"""
    )
    page.wait_for_timeout(300)
    where = page.evaluate(
        f"""([x, y]) => {{ const d = {_TIMELINE}; const v = Bokeh.index.find_one(d.figure);
        const at = v.canvas_view.el.getBoundingClientRect();
        return [at.left + v.frame.x_scale.compute(x), at.top + v.frame.y_scale.compute(y)]; }}""",
        [x, y],
    )
    page.mouse.move(where[0] - 3, where[1])
    page.mouse.move(*where)
    told = page.locator("#sp-tip")
    told.wait_for(state="visible")
    text = told.inner_text()
    assert tasks["key"][run] in text
    assert tasks["layer"][run] in text

    page.mouse.click(*where)
    story = page.locator("[data-sp-view=timeline] .sp-story")
    story.wait_for()
    assert tasks["key"][run] in story.inner_text()
    assert "execution" in story.inner_text()

    page.set_viewport_size({"width": 390, "height": 900})  # words stay whole, the longest bar fits
    seen = story.locator("tr").evaluate_all(
        """(rows) => rows.map(({ cells: [word, bar] }) => [
          word.firstChild && (() => { const r = document.createRange(); r.selectNodeContents(word);
            return r.getClientRects().length; })(),
          bar.firstChild.getBoundingClientRect().width / bar.getBoundingClientRect().width])"""
    )
    assert {lines for lines, _ in seen} == {1}
    assert 0.5 < max(share for _, share in seen) <= 1


@pytest.mark.parametrize("where", ["no/such/folder/r.html", "tables", "run.stageprof", "pipe"])
def test_a_path_that_cannot_be_written_is_an_error_of_ours_and_stays_as_it_was(
    generated: Callable[[int], Path], tmp_path: Path, where: str
) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "tasks.csv").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.stageprof").write_bytes(generated(1_000).read_bytes())
    before = sorted(tmp_path.rglob("*"))
    recording = stageprof.open(tmp_path / "run.stageprof")
    with pytest.raises(UsageError, match=re.escape(str(tmp_path / where))):
        recording.report(tmp_path / where)
    assert sorted(tmp_path.rglob("*")) == before
    assert stageprof.open(tmp_path / "run.stageprof").wall == recording.wall


def test_a_report_is_replaced_by_a_new_one(
    generated: Callable[[int], Path], tmp_path: Path
) -> None:
    page = tmp_path / "r.html"
    page.write_text("<!doctype html>an older one")
    stageprof.open(generated(1_000)).report(page)
    assert "<html" in page.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_is_wider_than_the_page(
    browser: Any, reported: Reported, theme: str, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = Watched(context.new_page()).open(reported(10_000))
    over = overhang(page)
    context.close()
    assert over <= 1
