"""The pages in a real browser: they draw, they answer, they ask for nothing, no text acts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stageprof
from profiles.stacks_made import HOSTILE
from profiles.test_flame import built, hostile
from stageprof.pages import flame, snakeviz
from stageprof_collectors.profiles.stats import stats
from ui.conftest import Watched, overhang, watched

__all__ = ["watched"]  # a fixture


def put(text: str, folder: Path) -> str:
    path = folder / "page.html"
    path.write_text(text, "utf-8")
    return path.as_uri()


def flame_of(recording: Any) -> str:
    return flame.text(stageprof.Recording.of(recording))


def test_a_flame_graph_draws_zooms_and_searches(watched: Watched, tmp_path: Path) -> None:
    page = watched.open(put(flame_of(built()), tmp_path))
    graph = page.locator("#graph")
    box = graph.bounding_box()
    assert box is not None
    # Execution took 7 of the 11 s and is first; construction stands right of it.
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 30)
    assert "main" in page.locator("#tip").inner_text()
    assert "4.00 s, 36 % of all" in page.locator("#tip").inner_text()
    page.mouse.click(box["x"] + 0.7 * box["width"], box["y"] + 50)
    assert page.locator("#whole").is_enabled()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50)
    assert "load" in page.locator("#tip").inner_text()
    page.locator("#whole").click()
    assert page.locator("#whole").is_disabled()
    page.fill("#find", "save")
    assert "1 box: 1.00 s, 9.1 % of all" in page.locator("#told").inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_page(browser: Any, tmp_path: Path, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = Watched(context.new_page()).open(put(flame_of(hostile().recording()), tmp_path))
    over = overhang(page)
    context.close()
    assert over <= 1


def test_a_flame_graph_can_be_walked_through_by_keys(watched: Watched, tmp_path: Path) -> None:
    page = watched.open(put(flame_of(built()), tmp_path))
    page.focus("#graph")
    for key in ("ArrowDown", "ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert page.locator("#told").inner_text().startswith("load")
    page.keyboard.press("Enter")
    assert page.locator("#whole").is_enabled()
    page.keyboard.press("Escape")
    assert page.locator("#whole").is_disabled()


@pytest.mark.parametrize("style", ["icicle", "sunburst"])
def test_snakeviz_draws(watched: Watched, tmp_path: Path, style: str) -> None:
    page = watched.page
    page.goto(put(snakeviz.text(stats(built(), "construction"), "etl construction"), tmp_path))
    page.wait_for_selector("#chart rect")
    if style == "sunburst":
        page.select_option("#sv-style-select", style)
        page.wait_for_selector("#chart path")
    names = page.locator("#pstats-table tbody tr td:last-child").all_inner_texts()
    assert "etl.py:9(load)" in names
    page.locator("#pstats-table tbody tr").first.click()
    page.wait_for_selector("#resetbutton-root:enabled")


def test_no_text_of_a_recording_acts_in_a_page(watched: Watched, tmp_path: Path) -> None:
    """B4, B5: flame graphs and snakeviz."""
    recording = hostile().recording()
    page = watched.open(put(flame_of(recording), tmp_path))
    box = page.locator("#graph").bounding_box()
    assert box is not None
    for part in range(1, 20):
        page.mouse.move(box["x"] + part / 20 * box["width"], box["y"] + 30)
    page.fill("#find", HOSTILE[0])
    assert page.evaluate("window.hacked") is None
    page.goto(put(snakeviz.text(stats(recording), HOSTILE[1]), tmp_path))
    page.wait_for_selector("#chart rect")
    for rect in page.locator("#chart rect").all()[:20]:
        rect.hover(force=True)
    page.locator("#sv-call-stack-btn").click()
    for row in page.locator("#pstats-table tbody tr").all()[:10]:
        row.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_pyinstruments_own_page_runs_no_text_of_a_recording(
    watched: Watched, tmp_path: Path
) -> None:
    from pyinstrument.renderers import HTMLRenderer

    text = HTMLRenderer().render(hostile().recording().profile("construction"))
    page = watched.page
    page.route("http*://**", lambda route: route.abort())  # it asks for a font
    page.goto(put(text, tmp_path))
    page.wait_for_selector("text=[root]")
    assert page.evaluate("window.hacked") is None
    theirs = ("fonts.googleapis", "Failed to load resource")
    watched.wrong[:] = [what for what in watched.wrong if not any(t in what for t in theirs)]
