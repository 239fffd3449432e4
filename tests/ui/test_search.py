"""Keys that are too many for the browser: the server finds them, and the page leads to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from replay.handmade import HandMade
from serving import running
from stageprof_collectors.recording import Recording
from stageprof_ui.app import page as made
from stageprof_ui.columns import lines, search, tables, timeline
from stageprof_ui.server import App
from stageprof_ui.store import Store
from ui.conftest import Watched
from ui.test_boxes import stolen
from ui.test_far import _TIMELINE


@pytest.fixture
def recording(generated: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch) -> Recording:
    monkeypatch.setattr(search, "_AT_ONCE", 3_000)
    monkeypatch.setattr(tables, "KEYS", 9_999)
    return Recording.open(generated(10_000))


def test_a_key_is_found_whatever_its_case_with_its_place_and_time(recording: Recording) -> None:
    tasks = recording.tasks()
    one = tasks.iloc[7_777]
    told = list(search.search(recording, f" {one['key'].upper()} "))
    assert [found.looked for found in told] == [3_000, 6_000, 9_000, 10_000]
    match = next(m for m in told[-1].matches if m.key == one["key"])
    assert match.start_s == pytest.approx(one["start_s"])
    assert match.took_s == pytest.approx(one["duration_s"])
    labels = [line.label for line in lines.lines(timeline.boxes(recording))]
    assert match.thread in labels
    assert recording.groups.rows[match.layer].layer == one["layer"]
    span = search.shown(match)
    assert span["start"] < match.start_s < match.start_s + match.took_s < span["stop"]


def test_a_text_that_most_keys_hold_ends_the_search_early(recording: Recording) -> None:
    told = list(search.search(recording, "("))
    assert [(t.looked, len(t.matches), t.more) for t in told] == [(3_000, search.MOST, True)]
    assert [m.start_s for m in told[0].matches] == sorted(m.start_s for m in told[0].matches)


def test_a_text_that_no_key_holds_finds_nothing(recording: Recording) -> None:
    *_, last = search.search(recording, "<img src=x>")
    assert (last.looked, last.matches, last.more) == (10_000, [], False)


def test_an_attempt_that_never_ran_is_not_found() -> None:
    """A stolen task has one: of it there is nothing to show, and it is no second task."""
    *_, last = search.search(stolen(), "task")
    assert (last.looked, last.tasks) == (2, 2)
    assert [match.key for match in last.matches] == ["task-0", "task-2"]
    assert [match.took_s for match in last.matches] == pytest.approx([0.1, 0.05])


def test_a_task_that_took_no_time_is_found() -> None:
    made = HandMade(1)
    made.run(0, 40, 40, cause=-1 - made.graph(0, 0, 0))
    *_, last = search.search(made.recording(100), "task-0")
    assert [(match.start_s, match.took_s) for match in last.matches] == [(0.04, 0.0)]


def test_a_page_leads_to_the_task_whose_key_was_typed(
    watched: Watched, recording: Recording
) -> None:
    task = recording.tasks().iloc[5_000]
    with running(App(partial(made, Store(recording)))) as app:
        page = watched.open(f"{app.url}#timeline")
        page.locator("[data-sp-page=timeline]").click()
        told = page.locator("[data-sp-view=timeline] [role=status]")
        looked_for(page, "<b>no such</b>")
        told.get_by_text("No key of 10,000 tasks holds <b>no such</b>.").wait_for()
        looked_for(page, task["key"])
        told.get_by_text("Keys of 10,000 tasks that hold").wait_for()
        row = told.locator("tr", has_text=task["key"]).first
        row.get_by_text("Show me").click()
        page.wait_for_function(f"{_TIMELINE}.figure.x_range.start > {task['start_s'] - 1}")
        window = page.evaluate(
            f"[{_TIMELINE}.figure.x_range.start, {_TIMELINE}.figure.x_range.end]"
        )
    assert window[0] < task["start_s"] < task["start_s"] + task["duration_s"] < window[1]


def looked_for(page: Any, text: str) -> None:
    field = page.locator("[data-sp-view=timeline] input[type=text]").first
    field.fill(text)
    field.press("Enter")
