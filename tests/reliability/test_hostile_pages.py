"""Every page in a real browser, of a recording whose every text is an enemy's.

Nothing executes, nothing gets in as an element, nothing is logged as an error, nothing is asked of
anybody: neither where a server sends a policy along nor in a file opened from disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from findings.conftest import Only, only
from reliability.enemy import FOREIGN, PAYLOADS, Enemy, header, rules, written
from serving import running
from stageprof import app as pages
from stageprof.cli import main
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.collector import Collector
from stageprof_ui.app import PAGES, following
from stageprof_ui.live import Run
from stageprof_ui.server import App
from ui.conftest import Watched, watched

__all__ = ["only", "watched"]  # fixtures

Page = Any
#: What a page may be asked of while it is on show: its own file, and what is in it.
_OWN: Final = ("file:", "data:", "blob:")


@pytest.fixture(scope="module")
def enemy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording."""
    return written(tmp_path_factory.mktemp("enemy") / "enemy.stageprof")


@pytest.fixture(autouse=True)
def hostile_findings(only: Only) -> None:
    """What the rules find is an enemy's as well, a card for each payload."""
    only(*rules())


def opened(watched: Watched, url: str) -> Page:
    """The page at a URL, once its first page, on which nothing may be drawn, is there."""
    watched.page.goto(url)
    watched.page.locator("[data-sp-view]").first.wait_for(state="visible")
    return watched.page


def look_at(page: Page) -> None:
    """Everything that is open on the page now: nothing of the enemy's acts or got in."""
    assert page.evaluate("window.hacked") is None
    assert page.evaluate(FOREIGN) == []
    assert page.get_by_text("This page cannot be shown").count() == 0


def walk(page: Page, only_first: bool = False) -> None:
    """Go to every page, open all that can be opened there, and point at what is drawn."""
    links = [link.get_attribute("data-sp-page") for link in page.locator("[data-sp-page]").all()]
    for name in links[: 1 if only_first else None]:
        page.locator(f"[data-sp-page='{name}']").click()
        view = page.locator(f"[data-sp-view='{name}']")
        view.wait_for(state="visible")
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        for canvas in view.locator(".bk-Canvas").all()[:6]:
            point_at(page, canvas)
        look_at(page)


def point_at(page: Page, canvas: Any) -> None:
    """Move the pointer over a drawing, and click on it."""
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    if not box:
        return
    for share in (0.1, 0.35, 0.6, 0.85):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])
        page.wait_for_timeout(30)
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.35 * box["height"])
    page.wait_for_timeout(60)


def test_there_is_a_card_and_a_worker_for_each_payload(enemy: Path) -> None:
    """B4: what the browser is shown holds all of the corpus, in every kind of text."""
    recording = Recording.open(enemy)
    assert len(PAYLOADS) >= 12
    assert len(recording.workers()) == len(PAYLOADS)
    assert len(recording.findings()) == len(PAYLOADS)
    for name, text in PAYLOADS.items():
        if name in ("surrogate", "long"):
            continue
        for texts in (recording.tasks()["key"], recording.store.strings):
            assert any(text[:20] in str(each) or text[:5] in repr(each) for each in texts), name


def test_what_gets_in_is_found_out(browser: Any) -> None:
    """B4: the judge is one: an element of theirs is seen in a shadow root, and what ran is too."""
    page = browser.new_page()
    page.set_content("<div></div>")
    look_at(page)
    page.evaluate(
        """(text) => { const root = document.querySelector('div').attachShadow({mode: 'open'});
        root.innerHTML = text; }""",
        PAYLOADS["attribute"],
    )
    assert len(page.evaluate(FOREIGN)) == 1
    page.wait_for_function("window.hacked === 1")
    page.close()


@pytest.fixture
def report(enemy: Path, tmp_path: Path) -> str:
    """The static report, from disk."""
    target = tmp_path / "r.html"
    assert main(["report", str(enemy), "-o", str(target)]) == 0
    return target.as_uri()


def test_the_first_page_of_a_report_runs_nothing(watched: Watched, report: str) -> None:
    """B4, T15, T23: 20 payloads in every text, cards of findings included; the page of every push.

    B5: the report has a policy, and asks for nothing.
    """
    asked: list[str] = []
    watched.page.on("request", lambda request: asked.append(request.url))
    page = watched.open(report)
    walk(page, only_first=True)
    assert page.locator(".sp-card").count() >= len(PAYLOADS)
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert [url for url in asked if not url.startswith(_OWN)] == []


@pytest.mark.nightly
def test_no_page_of_a_report_runs_anything(watched: Watched, report: str) -> None:
    """B4, B5: all pages from disk, with a pointer over what is drawn."""
    asked: list[str] = []
    watched.page.on("request", lambda request: asked.append(request.url))
    page = watched.open(report)
    walk(page)
    assert [url for url in asked if not url.startswith(_OWN)] == []


@pytest.mark.nightly
def test_no_page_of_a_comparison_runs_anything(watched: Watched, tmp_path: Path) -> None:
    """B4, B5: the report that `compare --html` writes: its policy, its requests, its texts."""
    target, asked = tmp_path / "c.html", list[str]()
    watched.page.on("request", lambda request: asked.append(request.url))
    well = written(tmp_path / "well.stageprof", failed=False)
    assert main(["compare", str(well), str(well), "--html", str(target)]) in (0, 1)
    page = opened(watched, target.as_uri())
    walk(page)
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert [url for url in asked if not url.startswith(_OWN)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["flame", "snakeviz"])
def test_no_page_of_stacks_runs_anything(
    watched: Watched, enemy: Path, tmp_path: Path, form: str
) -> None:
    """B4, B5: the pages that `flame` and `snakeviz` write."""
    target, asked = tmp_path / "f.html", list[str]()
    watched.page.on("request", lambda request: asked.append(request.url))
    assert main([form, str(enemy), "-o", str(target)]) == 0
    watched.page.goto(target.as_uri())
    watched.page.wait_for_timeout(500)
    for canvas in watched.page.locator("canvas, svg").all()[:2]:
        point_at(watched.page, canvas)
    look_at(watched.page)
    assert [url for url in asked if not url.startswith(_OWN)] == []


@pytest.mark.nightly
def test_no_page_of_the_app_runs_anything(watched: Watched, enemy: Path) -> None:
    """B4: all pages, served, where lines of the user's program are shown as well."""
    with running(pages.served(Recording.open(enemy))) as app:
        walk(watched.open(app.url))


@pytest.mark.nightly
def test_no_page_of_recordings_side_by_side_runs_anything(watched: Watched, enemy: Path) -> None:
    """B4: the page of `stageprof app A B`."""
    both = [Recording.open(enemy), Recording.open(enemy)]
    with running(pages.compared(both)) as app:
        walk(opened(watched, app.url))


@pytest.mark.nightly
def test_the_list_of_a_folder_runs_nothing(watched: Watched, enemy: Path, tmp_path: Path) -> None:
    """B4: `stageprof app DIR`, where the names of files are an enemy's too, as far as files go."""
    for name, text in PAYLOADS.items():
        safe_name = re.sub(r"[/\0]", "", text.encode("utf-8", "replace").decode())[:60]
        (tmp_path / f"{safe_name}{name}.stageprof").write_bytes(enemy.read_bytes())
    with pages.listed(str(tmp_path)) as app, running(app):
        page = watched.page
        page.goto(app.url)
        page.locator("a", has_text="<img").first.wait_for()
        look_at(page)


@pytest.mark.nightly
def test_no_page_of_a_running_cluster_runs_anything(watched: Watched, tmp_path: Path) -> None:
    """B4: all pages while the events still come in."""
    collector = Collector(None, str(header()["label"]), savable=True)
    alive: Callable[[], bool] = lambda: True  # noqa: E731
    with Run(collector, alive=alive, end=collector.close, folder=tmp_path) as run:
        batches = Enemy().batches()
        for batch in batches[:-4]:
            collector.take(batch)
        with running(App(lambda: following(run))) as app:
            page = watched.open(app.url)
            for batch in batches[-4:]:
                collector.take(batch)
            page.wait_for_function("document.querySelectorAll('[data-sp-page]').length > 1")
            page.wait_for_timeout(4000)  # the first snapshot of the other pages
            walk(page)
            assert page.locator("[data-sp-page]").count() == len(PAGES) + 1
