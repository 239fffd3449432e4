"""How fast the app draws: first picture and zoom in headless Chromium, on generated recordings.

Run ``python benchmarks/app.py [--tasks 10000 100000 1000000] [--rounds 5] [--write FILE]`` or
``make bench-ui``. First picture: from the moment at which the page itself is loaded to the first
drawing; zoom: from the turn of the wheel to the next drawing, the median of several; memory: of
the process that serves, after the page was loaded. All on one machine, without a GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

from benchmarks.generate import generate
from benchmarks.overhead import machine, write

#: Seconds: first picture after the page's own load, by tasks; and a zoom.
TARGETS = {1_000_000: 2.0, 5_000_000: 3.0}
ZOOM_S, MEMORY_BYTES = 0.15, 500e6

#: Notes when the wheel is turned next.
_NOTE_TURN = (
    "addEventListener('wheel', () => { window.turned = performance.now(); },"
    "{capture: true, once: true})"
)
_DRAWN = "Number(document.documentElement.dataset.stageprofDrawn ?? 0)"


@contextmanager
def served(path: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The app over a recording in a process of its own: its address, and the process."""
    command = [sys.executable, "-m", "stageprof", "app", os.fspath(path), "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        url = next(word for line in lines for word in line.split() if word.startswith("http"))
        try:
            yield url, psutil.Process(process.pid)
        finally:
            process.terminate()


def first_picture(page: Any, url: str) -> float:
    """Seconds from the page's own load to its first drawing."""
    page.goto(url)
    page.wait_for_function(f"{_DRAWN} > 0", timeout=120_000)
    return float(page.evaluate("stageprof.firstDrawn / 1000")) - float(
        page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd/1000")
    )


def zoom(page: Any) -> float:
    """Seconds from a turn of the wheel over the time line to the next drawing."""
    canvas = page.locator("[data-sp-view=timeline] .bk-Canvas").first
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60)
    before = page.evaluate(_DRAWN)
    page.evaluate(_NOTE_TURN)
    page.mouse.wheel(0, -240)
    page.wait_for_function(f"{_DRAWN} > {before}", timeout=30_000)
    return float(page.evaluate("(stageprof.lastDrawn - window.turned) / 1000"))


def measured(tasks: int, rounds: int, browser: Any, folder: Path) -> dict[str, float]:
    """The figures of one size."""
    path = folder / f"{tasks}.stageprof"
    generate(path, tasks=tasks, workers=16, threads=4, layers=10, seed=1)
    firsts, zooms = [], []
    with served(path) as (url, process):
        for _ in range(rounds):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            firsts.append(first_picture(page, url))
            page.evaluate("location.hash = '#timeline'")
            time.sleep(1)
            zooms += [zoom(page) for _ in range(8)]
            page.close()
        memory = process.memory_info().rss
    return {
        "tasks": tasks,
        "first": statistics.median(firsts),
        "zoom": statistics.median(zooms),
        "memory": memory,
    }


def table(rows: list[dict[str, float]]) -> Iterator[str]:
    """The figures as markdown."""
    yield "| tasks | first picture, s | target | zoom, s | target | server, MB | target |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        target = TARGETS.get(int(row["tasks"]), "")
        yield (
            f"| {int(row['tasks']):,} | {row['first']:.2f} | {target} | {row['zoom']:.3f} | "
            f"{ZOOM_S} | {row['memory'] / 1e6:.0f} | {MEMORY_BYTES / 1e6:.0f} |"
        )


def main() -> None:
    """Measure, print, and write if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--write", type=Path, help="put the table between the markers there")
    given = options.parse_args()
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        rows = [measured(n, given.rounds, browser, Path(folder)) for n in given.tasks]
        browser.close()
    text = "\n".join([machine(), "", *table(rows)])
    print(text)
    if given.write is not None:
        write(given.write, "app", text)


if __name__ == "__main__":
    main()
