"""The app over a recording, in a real browser: findings lead to tasks, and text acts on nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import panel as pn
import pytest

from benchmarks import generate
from chromium import QUIET
from serving import running
from stageprof.app import embedded, served, written
from stageprof_collectors.recording import Recording
from stageprof_ui.server import App
from ui.conftest import Watched

_SELECTION = "Object.values(stageprof.apps)[0].selection"

#: Each would set this if it ran.
_PAYLOADS = (
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=2</script>",
    "'\"><svg onload=window.hacked=3>",
    "</script><script>window.hacked=4</script>",
)


@pytest.fixture(name="running")
def shown(generated: Callable[[int], Path]) -> Iterator[App]:
    """The app over 10,000 tasks."""
    with running(served(Recording.open(generated(10_000)))) as app:
        yield app


def test_a_finding_leads_to_its_tasks(watched: Watched, running: App) -> None:
    """`Show me` selects the layers and the time of the finding, and goes to the time line."""
    page = watched.open(running.url)
    button = page.locator("[data-sp-show]").first
    if not button.is_visible():
        page.locator("summary", has_text="note").first.click()
    asked = page.evaluate("(b) => JSON.parse(b.dataset.spShow)", button.element_handle())
    button.click()
    page.wait_for_function("location.hash === '#timeline'")
    chosen = page.evaluate(f"{_SELECTION}.layers && [...{_SELECTION}.layers]")
    assert (chosen or []) == asked["layers"]
    page.locator("[data-sp-view=timeline]").wait_for()


def test_a_finding_leads_to_its_tasks_in_a_notebook(
    watched: Watched, generated: Callable[[int], Path]
) -> None:
    """There pages are tabs, and those of another recording stay as they are."""
    recording = Recording.open(generated(10_000))
    with running(App(lambda: pn.Column(embedded(recording), embedded(recording)))) as app:
        page = watched.open(app.url)
        button = page.locator("[data-sp-show]").last
        if not button.is_visible():
            page.locator("summary", has_text="note").last.click()
        button.click()
        shown = page.locator(".bk-tab.bk-active").all_inner_texts()
    assert shown == ["Overview", "Timeline"]


def test_in_a_notebook_what_is_incomplete_says_so_above_its_pages(
    tmp_path: Path, generated: Callable[[int], Path]
) -> None:
    whole = generated(1_000)
    cut = tmp_path / "cut.stageprof"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    for path, number in ((whole, 0), (cut, 1)):
        panes: list[Any] = embedded(Recording.open(path)).select(pn.pane.HTML)
        said = ["recording incomplete" in str(pane.object) for pane in panes]
        assert sum(said) == number
    assert said[0]


def test_a_stage_is_selected_and_let_go_by_its_button(watched: Watched, running: App) -> None:
    page = watched.open(running.url)
    button = page.locator(".sp-legend [data-sp-stage=execution]")
    for chosen in ("execution", ""):
        button.click()
        assert page.evaluate(f"{_SELECTION}.stage") == chosen
        assert button.get_attribute("aria-pressed") == str(bool(chosen)).lower()


def test_a_stage_that_is_let_go_by_something_else_is_not_said_to_be_chosen(
    watched: Watched, running: App
) -> None:
    page = watched.open(running.url)
    button = page.locator(".sp-legend [data-sp-stage=execution]")
    button.click()
    page.evaluate(f"{_SELECTION}.clear(); {_SELECTION}.change({{}})")  # as "show me" does
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert page.evaluate(f"{_SELECTION}.stage") == "execution"
    assert button.get_attribute("aria-pressed") == "true"


def test_pictures_say_what_they_show_to_those_who_cannot_see_them(
    watched: Watched, running: App
) -> None:
    page = watched.open(f"{running.url}#timeline")
    name = page.locator("[data-sp-view=timeline] [role=img]").first.get_attribute("aria-label")
    assert name
    assert "thread" in name


def test_search_finds_by_layer_and_by_key(watched: Watched, running: App) -> None:
    page = watched.open(f"{running.url}#timeline")
    page.locator("[data-sp-page=timeline]").click()
    box = page.locator("[data-sp-view=timeline] input[type=text]").first
    box.fill("mean_chunk")
    page.wait_for_function(f"{_SELECTION}.layers?.size > 0")
    names = page.evaluate(
        f"[...{_SELECTION}.layers].map((i) => {_SELECTION}.tables.layers[i].name)"
    )
    assert names
    assert all("mean_chunk" in name for name in names)
    box.fill("no such thing anywhere")
    page.wait_for_function(f"{_SELECTION}.runs?.size === 0")
    box.fill("")
    page.wait_for_function(f"{_SELECTION}.empty")


def test_two_who_look_do_not_disturb_each_other(browser: Any, running: App) -> None:
    contexts = [browser.new_context() for _ in range(2)]
    one, other = (Watched(c.new_page()) for c in contexts)
    first, second = one.open(running.url), other.open(running.url)
    first.locator(".sp-legend [data-sp-stage=execution]").click()
    assert first.evaluate(f"{_SELECTION}.stage") == "execution"
    assert second.evaluate(f"{_SELECTION}.stage") == ""
    for context in contexts:
        context.close()
    assert one.wrong + other.wrong == []


def test_hostile_names_run_nowhere(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4: in the report, on every page, and with a pointer over a task."""
    monkeypatch.setattr(generate, "_NAMES", _PAYLOADS)
    recording = tmp_path / "hostile.stageprof"
    generate.generate(recording, tasks=400)
    report = tmp_path / "hostile.html"
    written(Recording.open(recording), report)
    page = watched.open(report.as_uri())
    for link in page.locator("[data-sp-page]").all():
        link.click()
        page.wait_for_timeout(200)
    page.mouse.move(700, 330)
    assert page.evaluate("window.hacked") is None
    assert QUIET
