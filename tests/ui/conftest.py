"""A real browser, and recordings to show in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generate import generate
from stageprof.app import written
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.collector import Collector
from ui.observed import turns

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

Page = Any


def overhang(page: Page) -> int:
    """Pixels by which a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


class Watched:
    """A page that fails its test if it asks outside, logs an error or raises one."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(f"raised {error}"))
        page.on("console", self._logged)
        page.on("request", self._asked)

    def _logged(self, message: Any) -> None:
        if message.type == "error":
            self.wrong.append(f"logged {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(
            ("http://127.0.0.1", "ws://127.0.0.1", "file:", "data:", "blob:")
        ):
            self.wrong.append(f"asked {request.url}")

    def open(self, url: str) -> Page:
        """The page at a URL, once it has drawn something."""
        self.page.goto(url)
        self.page.wait_for_function("document.documentElement.dataset.stageprofDrawn > 0")
        return self.page


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A page of its own; what went wrong in it fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(30_000)
    found = Watched(context.new_page())
    yield found
    context.close()
    assert found.wrong == []


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Recordings of so many tasks, each made once."""
    folder = tmp_path_factory.mktemp("generated")

    def make(tasks: int) -> Path:
        path = folder / f"{tasks}.stageprof"
        if not path.exists():
            generate(path, tasks=tasks, workers=4, threads=2, layers=4, seed=1)
        return path

    return make


@pytest.fixture(scope="session")
def reported(generated: Callable[[int], Path]) -> Callable[[int], str]:
    """Static reports of such recordings, as file: URLs."""

    def make(tasks: int) -> str:
        recording = generated(tasks)
        page = recording.with_suffix(".html")
        if not page.exists():
            written(Recording.open(recording), page)
        return page.as_uri()

    return make


@pytest.fixture(scope="session")
def taking_turns(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of threads that take turns with the GIL, as a file: URL."""
    path: Path = tmp_path_factory.mktemp("gil") / "gil.html"
    written(turns().recording(2000), path)
    return path.as_uri()


@pytest.fixture
def collector() -> Iterator[Collector]:
    """What a run that goes on is collected by."""
    made = Collector(None, "a cluster", savable=True)
    yield made
    made.close()


@pytest.fixture
def fed(collector: Collector, tmp_path: Path, generated: Callable[[int], Path]) -> Any:
    """A run to which a thousand tasks were fed (of a module that needs Panel, so typed loosely)."""
    from ui.followed import a_run, feed

    run = a_run(collector, tmp_path)
    feed(run, collector, generated(1_000))
    return run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on is looked at often."""
    monkeypatch.setattr("stageprof_ui.live.PERIOD_S", 0.05)
    monkeypatch.setattr("stageprof_ui.live.LEAST_S", 0.1)
