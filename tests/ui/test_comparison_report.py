"""The static report of a comparison in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stageprof.cli import main
from ui.conftest import Watched


@pytest.mark.parametrize("width", [390, 1280])
def test_the_verdict_comes_first_and_the_pages_of_the_candidate_follow(
    watched: Watched, generated: Callable[[int], Path], tmp_path: Path, width: int
) -> None:
    """It fits a telephone and a desktop, asks for nothing, and logs no error."""
    page = tmp_path / "page.html"
    words = (str(generated(1_000)), str(generated(10_000)), "--html", str(page))
    assert main(["compare", *words]) == 1
    seen = watched.page
    seen.set_viewport_size({"width": width, "height": 900})
    seen.goto(page.as_uri())
    seen.locator("h2", has_text="Worse than the baseline").wait_for()

    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.locator("[data-sp-view=compare] .two").count() >= 3
    seen.locator("[data-sp-page=overview]").click()
    seen.locator("[data-sp-view=overview]").wait_for()
