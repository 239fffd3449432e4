"""Tables in a browser: what has no room is cut so that it is seen, and what counts has room."""

from __future__ import annotations

from pathlib import Path

import pytest

from stageprof.app import written
from stageprof_ui.views import gil, handover, layers, profiles, transfers, workers
from stageprof_ui.views.table import Column
from stageprof_ui.views.workers import _LOAD
from ui.conftest import Watched
from ui.observed import contended

#: The last column of each table that must be within a page of 1280 pixels.
LAST = {
    "workers": ("workers", "state"),
    "holders": ("profiles", "place"),
}


def test_a_name_that_has_no_room_ends_in_an_ellipsis_and_is_told_whole(
    watched: Watched, tmp_path: Path
) -> None:
    name = "a_function_with_a_name_that_no_column_of_a_table_has_room_for"
    made = contended()
    made.stood(0, 0, 2000, f"/u/etl.py:24 {name}")
    written(made.recording(2000), tmp_path / "long.html")
    shown = watched.open((tmp_path / "long.html").as_uri())
    shown.evaluate("location.hash = 'profiles'")
    text = shown.locator(".tabulator-cell[tabulator-field=function]").get_by_title(name)
    text.wait_for()
    assert text.inner_text() == name
    box = text.locator("xpath=ancestor::*[contains(@class, 'tabulator-cell')][1]")
    assert box.evaluate("(e) => getComputedStyle(e).textOverflow") == "ellipsis"
    assert box.evaluate("(e) => e.scrollWidth > e.clientWidth")


@pytest.mark.parametrize("which", LAST)
def test_all_columns_are_seen_on_a_small_screen(
    watched: Watched, taking_turns: str, which: str
) -> None:
    page, field = LAST[which]
    watched.page.set_viewport_size({"width": 1280, "height": 900})
    shown = watched.open(taking_turns)
    shown.evaluate("(page) => { location.hash = page; }", page)
    head = shown.locator(f"[data-sp-view={page}] .tabulator-col[tabulator-field='{field}']").first
    head.wait_for()
    table = head.locator("xpath=ancestor::*[contains(@class, 'tabulator-header')][1]")
    box, around = head.bounding_box(), table.bounding_box()
    assert box["x"] + box["width"] <= around["x"] + around["width"] + 1
    titles = table.locator(".tabulator-col-title")
    cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText.trim())"
    assert [title for title in titles.evaluate_all(cut) if title] == []


def test_the_table_of_processes_fits_with_all_its_columns() -> None:
    """Whether there is one of disks depends on the machine."""
    assert sum(column.width for column in _LOAD) <= 1280 - 40


def test_titles_of_columns_are_written_alike_on_every_page() -> None:
    tables = [t for page in (gil, handover, layers, profiles, transfers, workers)
              for t in vars(page).values() if isinstance(t, tuple)]  # fmt: skip
    columns = [column for table in tables for column in table if isinstance(column, Column)]
    assert len(columns) > 50
    said = [text for column in columns for text in (column.title, column.tip)]
    assert [text for text in said if text[:1].isupper() and text[:3] not in ("GIL", "CPU")] == []
