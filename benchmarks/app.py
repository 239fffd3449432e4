"""How fast the app draws: first picture and zoom in headless Chromium, on generated recordings.

Run ``python benchmarks/app.py [--tasks 10000 ...] [--rounds 5] [--write FILE]`` or
``make bench-ui``. First picture: from the moment at which the page itself is loaded to the first
drawing; zoom: from the turn of the wheel to the next drawing, the median of several. Memory is
that of the process that serves: before a page was asked for, what it is a task beyond an app over
ten tasks, the most while it prepared its pages, and by how much it grows with each of five browsers
at once; idle is how much of a processor it takes while these show it and nobody does anything.
``--memory`` measures these alone. All on one machine, without a GPU.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

from benchmarks.generate import generate
from benchmarks.page import machine, write

#: Tasks.
SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
#: Seconds: first picture after the page's own load, by tasks; and a zoom.
TARGETS = {1_000_000: 2.0, 5_000_000: 3.0, 10_000_000: 3.0}
#: Browsers that look at once.
VIEWERS = 5
ZOOM_S, MEMORY_BYTES = 0.15, 500e6
#: Seconds for which nobody does anything.
IDLE_S = 20

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


def settled(process: psutil.Process) -> float:
    """Bytes that a process takes, once they change by less than a megabyte in a second."""
    before, now = 0.0, float(process.memory_info().rss)
    while abs(now - before) > 1e6:
        time.sleep(1)
        before, now = now, float(process.memory_info().rss)
    return now


@dataclass(frozen=True)
class Taken:
    """What the app takes over a recording."""

    alone: float
    """Bytes before anybody looks."""
    peak: float
    """Bytes at most while it prepares the pages."""
    viewer: float
    """Bytes that each browser adds."""
    idle: float
    """Share of a processor while five browsers show it and nobody does anything."""


def taken(path: Path, browser: Any) -> Taken:
    """Measure it with five browsers at once."""
    with served(path) as (url, process):
        alone, most = settled(process), peak(process)
        pages = []
        for _ in range(VIEWERS):
            pages.append(browser.new_page())
            first_picture(pages[-1], url)
        together = settled(process)
        before = process.cpu_times()
        time.sleep(IDLE_S)
        after = process.cpu_times()
        for page in pages:
            page.close()
    busy = after.user - before.user + after.system - before.system
    return Taken(alone, most, (together - alone) / VIEWERS, busy / IDLE_S)


def peak(process: psutil.Process) -> float:
    """The most bytes that a process took until now; nan where the system does not keep it."""
    status = Path(f"/proc/{process.pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return float(found[0]) * 1024 if found else float("nan")


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


def times(path: Path, rounds: int, browser: Any) -> tuple[list[float], list[float]]:
    """Seconds of first pictures and of zooms."""
    firsts, zooms = [], []
    with served(path) as (url, _):
        for _ in range(rounds):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            firsts.append(first_picture(page, url))
            page.evaluate("location.hash = '#timeline'")
            time.sleep(1)
            zooms += [zoom(page) for _ in range(8)]
            page.close()
    return firsts, zooms


def measured(tasks: int, rounds: int, browser: Any, path: Path, base: float) -> dict[str, float]:
    """The figures of one size; no times if there are no rounds."""
    if not path.exists():
        generate(path, tasks=tasks, workers=16, threads=4, layers=10, seed=1)
    firsts, zooms = times(path, rounds, browser) if rounds else ([], [])
    took = taken(path, browser)
    return {
        "tasks": tasks,
        "first": statistics.median(firsts or [float("nan")]),
        "zoom": statistics.median(zooms or [float("nan")]),
        "memory": took.alone,
        "per_task": (took.alone - base) / tasks,
        "peak": took.peak,
        "per_viewer": took.viewer,
        "idle": took.idle,
    }


def table(rows: list[dict[str, float]]) -> Iterator[str]:
    """The figures as markdown."""
    yield (
        "| tasks | first picture, s | target | zoom, s | target | server, MB | target | "
        "bytes a task | at most, MB | MB a browser | idle, % | target |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        target = TARGETS.get(int(row["tasks"]), "")
        yield (
            f"| {int(row['tasks']):,} | {row['first']:.2f} | {target} | {row['zoom']:.3f} | "
            f"{ZOOM_S} | {row['memory'] / 1e6:.0f} | {MEMORY_BYTES / 1e6:.0f} | "
            f"{row['per_task']:.0f} | {row['peak'] / 1e6:.0f} | {row['per_viewer'] / 1e6:.1f} | "
            f"{100 * row['idle']:.2f} | 1 |"
        )


def main() -> None:
    """Measure, print, and write if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, nargs="+", default=SIZES)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--memory", action="store_true", help="no times")
    options.add_argument("--folder", type=Path, help="where recordings are kept from run to run")
    options.add_argument("--write", type=Path, help="put the table between the markers there")
    given = options.parse_args()
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        kept, rounds = given.folder or Path(folder), 0 if given.memory else given.rounds
        generate(kept / "small.stageprof", tasks=10)
        base = taken(kept / "small.stageprof", browser).alone
        paths = [kept / f"{n}.stageprof" for n in given.tasks]
        rows = [
            measured(n, rounds, browser, path, base)
            for n, path in zip(given.tasks, paths, strict=True)
        ]
        browser.close()
    text = "\n".join([machine(), "", *table(rows)])
    print(text)
    if given.write is not None:
        write(given.write, "app", text)


if __name__ == "__main__":
    main()
