"""Pictures of every page in both themes: `make screenshots` runs the demo and writes them here.

They go to docs/screenshots/<page>_<theme>.png, 1440 pixels wide.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import sync_playwright

import stageprof
from stageprof.cli import main as command

WIDTH, HEIGHT = 1440, 900
HERE: Final = Path(__file__).parent / "screenshots"
_DRAWN: Final = "document.documentElement.dataset.stageprofDrawn > 0"


def taken(page: Any, theme: str) -> None:
    """Every page of the report that is open."""
    names = [link.get_attribute("data-sp-page") for link in page.locator("[data-sp-page]").all()]
    for name in names:
        page.evaluate("(name) => { location.hash = name; }", name)
        page.wait_for_timeout(1500)
        page.screenshot(path=HERE / f"{name}_{theme}.png", full_page=True)


def main() -> None:
    """Profile the demo, write its report, and look at it."""
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        recording, report = Path(folder) / "demo.stageprof", Path(folder) / "demo.html"
        command(["demo", "-o", str(recording)])
        stageprof.open(recording).report(report)
        opened = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for theme in ("light", "dark"):
            context = opened.new_context(
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme="dark" if theme == "dark" else "light",
            )
            page = context.new_page()
            page.goto(report.as_uri())
            page.wait_for_function(_DRAWN)
            taken(page, theme)
        opened.close()


if __name__ == "__main__":
    main()
