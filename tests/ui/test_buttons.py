"""The buttons of a picture: what dragging does there, and the way back; at any width and theme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ui.conftest import Watched

Reported = Callable[[int], str]

_DRAWINGS = "Object.values(Object.values(stageprof.apps)[0].drawings)"
_SHOWN = {"timeline": "Tasks", "overview": "What each part"}


def _drawing(view: str) -> str:
    return f"{_DRAWINGS}.find((d) => d.figure.name.startsWith('{_SHOWN[view]}'))"


def _dragged(page: Any, view: str) -> list[float]:
    """Draw a line in the upper right of a picture; its window afterwards."""
    canvas = page.locator(f"[data-sp-view={view}] .bk-Canvas").first
    canvas.evaluate("(element) => element.scrollIntoView()")
    box = canvas.bounding_box()
    right, top = box["x"] + box["width"], box["y"]
    page.mouse.move(right - 120, top + 15)
    page.mouse.down()
    page.mouse.move(right - 80, top + 40)
    page.mouse.move(right - 40, top + 65)
    page.mouse.up()
    return _window(page, view)


def _window(page: Any, view: str) -> list[float]:
    found: list[float] = page.evaluate(f"{_drawing(view)}.window")
    return found


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1280, "dark")])
@pytest.mark.parametrize("view", ["timeline", "overview"])
def test_dragging_moves_or_sums_up_as_the_buttons_say(
    browser: Any, reported: Reported, view: str, width: int, theme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = Watched(context.new_page()).open(f"{reported(10_000)}#{view}")
    page.wait_for_function(f"{_drawing(view)}?.drawn?.width > 0")
    inside = page.locator(f"[data-sp-view={view}]")
    page.evaluate(f"{_drawing(view)}.figure.x_range.setv({{start: 0.2, end: 0.5}})")
    before = _window(page, view)

    moved = _dragged(page, view)
    assert moved[0] < before[0]
    assert inside.locator(".sp-story").count() == 0

    inside.get_by_text("drag sums up", exact=True).click()
    assert _dragged(page, view) == moved
    inside.locator(".sp-story").wait_for()

    inside.get_by_text("show everything", exact=True).click()
    start, end = _window(page, view)
    assert start == 0
    assert end > before[1]
    assert inside.locator(".sp-story").count() == 0

    inside.get_by_text("drag moves", exact=True).click()
    page.evaluate(f"{_drawing(view)}.figure.x_range.setv({{start: 0.2, end: 0.5}})")
    assert _dragged(page, view)[0] < before[0]
    assert inside.locator(".bk-tool-button, .bk-tool-overflow").count() == 0
    context.close()
