"""What a page is on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.generate import generate
from stageprof.app import written
from stageprof_collectors.recording import Recording
from ui.conftest import Watched

#: The theme of a page, and whether the names beside a picture are dark.
SEEN = """() => {
  const figure = Bokeh.index.query((view) => view.model.type === "Figure" && view.is_displayed)
    .toArray()[0];
  const canvas = figure.canvas_view.primary.canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, 60, canvas.height);
  let dark = 0;
  for (let i = 0; i < data.length; i += 4) {
    dark += data[i] < 80 && data[i + 1] < 80 && data[i + 2] < 80 && data[i + 3] > 200;
  }
  return [document.documentElement.dataset.theme, dark > 20];
}"""


def test_a_dark_page_is_printed_light_and_is_dark_thereafter(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    watched.page.emulate_media(color_scheme="dark")
    page = watched.open(reported(1_000))
    page.wait_for_function(f"({SEEN})().join() === 'dark,false'")
    page.evaluate(f"window.addEventListener('beforeprint', () => {{ window.seen = ({SEEN})(); }})")
    page.pdf()
    assert page.evaluate("window.seen") == ["light", True]
    page.wait_for_function(f"({SEEN})().join() === 'dark,false'")


def test_paper_has_the_colours_of_bars_and_names_the_page_it_is(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    watched.page.emulate_media(media="print")
    bar = page.locator(".sp-stagebar button").first
    assert bar.evaluate("(node) => getComputedStyle(node).printColorAdjust") == "exact"
    assert page.locator("nav a:visible").all_inner_texts() == ["Overview"]


def test_what_is_too_wide_is_shrunk_on_paper_and_as_it_was_thereafter(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    """Paper cannot be scrolled."""
    watched.page.set_viewport_size({"width": 700, "height": 900})
    page = watched.open(reported(1_000))
    page.locator("[data-sp-page=layers]").click()
    page.locator("[data-sp-view=layers] .tabulator-row").first.wait_for()
    cut = "stageprof.paper.shrunk().length - 1"
    before = page.evaluate(cut)
    assert before > 0
    watched.page.emulate_media(media="print")
    page.evaluate("stageprof.paper.put()")
    assert page.evaluate(cut) == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(cut) == before


def test_paper_has_no_buttons_but_those_that_were_chosen(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    page.locator("[data-sp-page=timeline]").click()
    page.locator("[data-sp-view=timeline] .bk-btn").first.wait_for()
    watched.page.emulate_media(media="print")
    assert page.locator("[data-sp-view=timeline] .bk-btn:visible").all_inner_texts() == ["layer"]
    assert page.locator("[data-sp-view=timeline] input:visible").count() == 0


def test_paper_has_no_hints_for_the_mouse_but_the_facts_beside_them(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    page.locator("[data-sp-page=timeline]").click()
    hint = page.locator("[data-sp-view=timeline] .sp-hint").first
    hint.wait_for()
    assert "Scroll to zoom" in hint.inner_text()
    watched.page.emulate_media(media="print")
    assert hint.inner_text().strip() == "Colour is the layer, and how strong it is says how busy."


def test_paper_has_all_rows_of_a_table_and_the_page_is_at_those_it_was_at(
    watched: Watched, tmp_path: Path
) -> None:
    """Nobody turns over what is on paper."""
    path = tmp_path / "layers.stageprof"
    generate(path, tasks=400, workers=2, threads=1, layers=40, seed=1)
    written(Recording.open(path), path.with_suffix(".html"))
    page = watched.open(path.with_suffix(".html").as_uri())
    page.locator("[data-sp-page=layers]").click()
    rows = page.locator("[data-sp-view=layers] .tabulator-row")
    page.locator("[data-sp-view=layers] .tabulator-page[data-page='2']").click()
    page.locator("[data-sp-view=layers] .tabulator-page.active[data-page='2']").wait_for()
    before = rows.all_inner_texts()
    assert len(before) == 15
    watched.page.emulate_media(media="print")
    page.evaluate("stageprof.paper.put()")
    assert rows.count() >= 40
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert rows.all_inner_texts() == before


def test_paper_has_what_a_reader_could_open_and_it_is_closed_thereafter(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    closed = page.locator("[data-sp-view=overview] details:not([open])")
    before = closed.count()
    assert before > 0
    page.evaluate("stageprof.paper.put()")
    assert closed.count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert closed.count() == before


def test_on_paper_what_stands_before_a_table_or_picture_stays_with_it(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    page.locator("[data-sp-page=layers]").click()
    page.locator("[data-sp-view=layers] .tabulator-row").first.wait_for()
    page.evaluate("stageprof.paper.put()")
    before = "getComputedStyle(node.getRootNode().host.previousElementSibling).breakAfter"
    tables = page.locator("[data-sp-view=layers] .tabulator")
    assert tables.evaluate_all(f"(all) => all.map((node) => {before})") == ["avoid"]
