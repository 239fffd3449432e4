"""What a page sends and keeps: the right run of each box, and the view that one looks at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import running
from stageprof.app import served
from stageprof_collectors.recording import Recording
from stageprof_ui.columns import sent, timeline
from stageprof_ui.columns.packing import steps
from stageprof_ui.store import Store
from ui.conftest import Watched


@pytest.mark.parametrize(("most", "told"), [(10_000, True), (9_999, False)])
def test_boxes_lead_to_their_keys_whenever_keys_are_sent(
    generated: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch, most: int, told: bool
) -> None:
    """There are more boxes than tasks, and it is the tasks whose keys are sent."""
    monkeypatch.setattr(sent, "KEYS", most)
    boxes = timeline.boxes(Recording.open(generated(10_000)))
    assert len(boxes) > 10_000
    runs = sent.columns(boxes)["run"][0]
    same = np.array_equal(runs, steps(boxes.run))
    assert same == told


def test_what_tells_a_story_has_the_style_of_the_page(generated: Callable[[int], Path]) -> None:
    """Or its bars have no height: each part of a page has a style of its own."""
    from stageprof_ui.views import timeline as view

    store = Store(Recording.open(generated(1_000)))
    told: Any = view.view(store, store.stock())[-1]
    assert told.object.stylesheets


def test_the_way_to_the_content_leaves_the_page_as_it_is(
    watched: Watched, generated: Callable[[int], Path]
) -> None:
    with running(served(Recording.open(generated(1_000)))) as app:
        page = watched.open(app.url)
        page.locator("[data-sp-page=workers]").click()
        page.locator("[data-sp-view=workers]").wait_for()
        page.locator(".sp-skip").focus()
        page.keyboard.press("Enter")
        page.wait_for_function("location.hash === '#sp-main'")
        assert page.locator("[data-sp-view=workers]").is_visible()
        assert page.evaluate("document.activeElement.id") == "sp-main"


def test_the_way_back_leads_to_the_page_that_was_there_at_first(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    """Its address names none."""
    page = watched.open(reported(1_000))
    page.locator("[data-sp-page=layers]").click()
    page.locator("[data-sp-page=layers][aria-current]").wait_for()
    page.go_back()
    page.locator("[data-sp-page=overview][aria-current]").wait_for()
    assert page.locator("[data-sp-view=layers]").is_hidden()
