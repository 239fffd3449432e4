"""What a page is on paper."""

from __future__ import annotations

from collections.abc import Callable

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
