"""GIL, profiles, workers and memory in a real browser: nothing acts, and buttons do."""

from __future__ import annotations

from typing import Any

import pytest

from stageprof.app import written
from ui.conftest import Watched
from ui.observed import hostile

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a recording whose texts an enemy chose."""
    path = tmp_path_factory.mktemp("report") / "hostile.html"
    written(hostile().recording(1000), path)
    return path.as_uri()


def shown(watched: Watched, report: str, name: str) -> Any:
    """One view, once its figures and its tables are where they stay."""
    watched.page.goto(f"{report}#{name}")
    view = watched.page.locator(f"[data-sp-view={name}]")
    view.locator("canvas").last.wait_for()
    view.locator(".tabulator-row").last.wait_for()
    watched.page.wait_for_function(_STILL)
    return view


#: Nothing has changed its height for half a second.
_STILL = (
    "() => { const high = document.documentElement.scrollHeight, now = performance.now();"
    "if (window.high !== high) [window.high, window.since] = [high, now];"
    "return now - window.since > 500; }"
)


_LINES = (
    "() => [...Bokeh.documents[0]._all_models.values()]"
    ".filter((m) => m.type === 'GlyphRenderer' && m.glyph.type === 'Line' && m.visible).length"
)
_RANGE = (
    "() => { const f = [...Bokeh.documents[0]._all_models.values()]"
    ".find((m) => m.type === 'Figure' && m.name?.startsWith('What tasks were seen'));"
    "return [f.x_range.start, f.x_range.end, f.visible]; }"
)


@pytest.mark.parametrize("name", ["profiles", "workers"])
def test_no_text_acts(watched: Watched, report: str, name: str) -> None:
    view = shown(watched, report, name)
    assert view.get_by_text("<img src=x onerror=window.hacked=1>").count() > 0
    assert watched.page.evaluate("window.hacked") is None


def test_processes_are_hidden_and_shown(watched: Watched, report: str) -> None:
    view = shown(watched, report, "workers")
    whole = watched.page.evaluate(_LINES)
    view.get_by_role("button", name="none").click()
    hidden = watched.page.evaluate(_LINES)
    view.get_by_role("button", name="all", exact=True).click()
    assert hidden < whole == watched.page.evaluate(_LINES)


def test_a_click_on_a_box_zooms_and_a_button_goes_back(watched: Watched, report: str) -> None:
    view = shown(watched, report, "profiles")
    canvas = view.locator(".bk-Canvas").last
    canvas.scroll_into_view_if_needed()
    before, box = watched.page.evaluate(_RANGE), canvas.bounding_box()
    canvas.click(position={"x": box["width"] / 2, "y": 12})
    watched.page.wait_for_function(f"(end) => ({_RANGE})()[1] < end", arg=before[1])
    view.get_by_role("button", name="show everything").click()
    watched.page.wait_for_function(f"(end) => ({_RANGE})()[1] === end", arg=before[1])


def test_a_search_tells_how_much_it_found(watched: Watched, report: str) -> None:
    view = shown(watched, report, "profiles")
    view.get_by_placeholder("task, function or line").press_sequentially("script")
    view.get_by_text("800 ms of 4.00 s").wait_for()
