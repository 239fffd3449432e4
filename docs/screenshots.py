"""Pictures of every page in both themes: `make screenshots` writes them to docs/screenshots.

Six pages are those of the demo's report; Compare is the report of a sample against its mended
twin; Live is the app while a cluster works. Each is <page>_<theme>.png, 1440 pixels wide.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import dask.array as da
from distributed import Client, LocalCluster
from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1440, 900
ROOT: Final = Path(__file__).parents[1]
HERE: Final = ROOT / "docs" / "screenshots"
_SAMPLES: Final = ROOT / "samples" / "findings"
#: Until everything has slid into its place.
_STILL_MS: Final = 1500


def main() -> None:
    """Record, and look at it in both themes."""
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        report, comparison = _demo(folder), _comparison(folder)
        opened = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for theme in ("light", "dark"):
            look: dict[str, Any] = {"color_scheme": theme}
            page = opened.new_page(viewport={"width": WIDTH, "height": HEIGHT}, **look)
            _report(page, report, theme)
            page.goto(comparison.as_uri())
            _taken(page, "compare", theme)
            _live(page, theme)
        opened.close()


def _demo(folder: Path) -> Path:
    recording, page = folder / "demo.stageprof", folder / "demo.html"
    _stageprof(folder, "demo", "-o", recording)
    _stageprof(folder, "report", recording, "-o", page)
    return page


def _comparison(folder: Path) -> Path:
    page, program = folder / "comparison.html", folder / "scores.py"
    sides = []
    for kind in ("fixed", "bad"):
        program.write_text((_SAMPLES / f"embedded_object_{kind}.py").read_text())
        sides.append(folder / f"{kind}.stageprof")
        _stageprof(folder, "run", "-o", sides[-1], program)
    _stageprof(folder, "compare", *sides, "--html", page, accepted=(0, 1))
    return page


def _stageprof(folder: Path, *words: object, accepted: Sequence[int] = (0,)) -> None:
    line = [sys.executable, "-m", "stageprof", *map(str, words)]
    code = subprocess.run(line, cwd=folder, check=False).returncode
    if code not in accepted:
        sys.exit(f"{' '.join(line)} ended with {code}")


def _report(page: Any, report: Path, theme: str) -> None:
    """Every page of a report."""
    page.goto(report.as_uri())
    page.wait_for_function("document.documentElement.dataset.stageprofDrawn > 0")
    for link in page.locator("[data-sp-page]").all():
        _taken(page, link.get_attribute("data-sp-page"), theme)


def _live(page: Any, theme: str) -> None:
    """The first page of the app when half of a computation is done."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=2) as cluster,
        Client(cluster) as client,
        _following(cluster.scheduler_address) as url,
    ):
        page.goto(url)
        page.locator("[data-sp-live=state]", has_text="recording").wait_for()
        x = da.random.random((6_000, 6_000), chunks=(500, 500))
        ended = client.compute((x @ x.T).std())
        page.wait_for_function(
            "Object.values(stageprof.apps.live?.drawings ?? {})[0]?.boxes.count > 800"
        )
        _taken(page, "live", theme)
        ended.result()


@contextmanager
def _following(address: str) -> Iterator[str]:
    """The app beside a cluster: its address."""
    words = [sys.executable, "-m", "stageprof", "app", address, "--no-browser"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        try:
            yield next(word for line in lines for word in line.split() if word.startswith("http"))
        finally:
            process.terminate()


def _taken(page: Any, name: str, theme: str) -> None:
    page.evaluate("(name) => { location.hash = name; }", name)
    page.locator(f"[data-sp-view={name}]").wait_for()
    page.wait_for_timeout(_STILL_MS)
    page.screenshot(path=HERE / f"{name}_{theme}.png", full_page=True)


if __name__ == "__main__":
    main()
