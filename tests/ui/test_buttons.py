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


def test_a_rectangle_sums_up_seconds_of_one_kind(browser: Any, reported: Reported) -> None:
    """Of the path those of the path; of all lines those in which somebody was busy."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = Watched(context.new_page()).open(f"{reported(10_000)}#overview")
    page.wait_for_function(f"{_drawing('overview')}?.drawn?.width > 0")
    path, all_ = (
        page.evaluate(
            f"""(() => {{ const d = {_drawing("overview")}, top = d.lines[0];
            return d.totals({{ x0: 0, x1: 1e9, y0: {low}, y1: top.top }}); }})()"""
        )
        for low in ("top.bottom + 0.01", "0")
    )
    assert (path["what"], all_["what"]) == ("of the critical path", "busy")
    assert 0 < path["busy"] < all_["busy"]
    waits = {"", "idle", "wait.thread", "wait.resource"}
    assert waits.isdisjoint(name for name, _ in all_["by"])
    context.close()


def test_the_story_of_a_task_has_its_own_time_wherever_it_was_clicked(
    browser: Any, reported: Reported
) -> None:
    """A hop of a few milliseconds on the critical path was told as its function's time."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = Watched(context.new_page()).open(f"{reported(10_000)}#overview")
    page.wait_for_function(f"{_drawing('overview')}?.drawn?.width > 0")
    told = page.evaluate(
        f"""(() => {{ const d = {_drawing("overview")}, {{ unit }} = d.boxes;
        const at = (line, run) => {{
          for (const r of line.rows) {{
            const row = d.boxes.rows[r];
            for (let i = 0; row && i < row.n; i++) {{
              if (run < 0 ? row.run[i] >= 0 && row.length[i] > 0 : row.run[i] === run)
                return {{
                  run: row.run[i], from: row.start[i] * unit, length: row.length[i] * unit,
                }};
            }}
          }}
        }};
        const line = (label) => d.lines.find((one) => one.label === label);
        const path = line("critical path");
        const box = at(path, -1);
        d.tap({{ x: box.from + box.length / 2, y: (path.top + path.bottom) / 2 }});
        const place = document.createElement("div");
        place.innerHTML = d.panel.text;
        const rows = [...place.querySelectorAll("tr")].map((row) => row.innerText);
        const took = stageprof.seconds(at(line("workers"), box.run).length);
        return [rows.find((row) => row.includes("its function")), took]; }})()"""
    )
    assert told[1] in told[0]
    context.close()


def test_a_picture_leaves_room_for_a_finger_to_scroll_the_page(
    browser: Any, reported: Reported
) -> None:
    """What touches the picture moves the picture: one as high as the screen held its reader."""
    context = browser.new_context(viewport={"width": 390, "height": 600}, has_touch=True,
                                  is_mobile=True)  # fmt: skip
    page = Watched(context.new_page()).open(f"{reported(10_000)}#timeline")
    page.wait_for_function(f"{_drawing('timeline')}?.drawn?.width > 0")
    assert page.evaluate("matchMedia('(pointer: coarse)').matches")
    assert page.evaluate(f"{_drawing('timeline')}.figure.height") <= 0.6 * 600
    context.close()


def test_what_has_the_keyboard_has_a_line_around_it(watched: Watched, reported: Reported) -> None:
    page = watched.open(reported(1_000))
    page.evaluate("location.hash = 'timeline'")
    for found in (page.locator(".bk-input").first, page.get_by_role("button", name="stage").last):
        found.wait_for()
        page.keyboard.press("Tab")  # from now on the focus is the keyboard's
        found.focus()
        shown = (
            "(node) => [getComputedStyle(node).outlineStyle, getComputedStyle(node).outlineWidth]"
        )
        assert found.evaluate(shown) == ["solid", "2px"]
