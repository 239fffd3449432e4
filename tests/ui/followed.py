"""A run that goes on, for tests: its rows, what a browser is told, and how it is fed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stageprof_collectors.storage import frame
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.file import read_frames
from stageprof_runtime.event import ASSIGN, NO_CAUSE, RUN, Place
from stageprof_ui.live import Run, Snapshot
from stageprof_ui.views.live import Viewer

#: The time line of a page that is followed.
DRAWING = "Object.values(stageprof.apps.live?.drawings ?? {})[0]"

CLIENT = Place("client", "here", 1, "client", 0)
SCHEDULER = Place("scheduler", "here", 2, "tcp://s:1", 0)
WORKER = Place("worker", "here", 3, "tcp://w:1", 0)


def batches(path: Path) -> list[bytes]:
    """What a recording is made of, in order."""
    with read_frames(path) as frames:
        found = [f.raw for f in frames if f.type == frame.BATCH]
    return [bytes(batch) for raw in found for batch in frame.split(raw)]


def assigned(run: int, key: str) -> tuple[object, ...]:
    return (ASSIGN, run, 0, "tcp://w:1", NO_CAUSE, key)


def ran(run: int, start: int, stop: int, thread: int = 1) -> tuple[object, ...]:
    return (RUN, run, start, start, start, stop, thread, 0, "tcp://w:1")


class Told:
    """A browser that puts together what it is told, as `browser/live.js` does."""

    def __init__(self, viewer: Viewer, first: int) -> None:
        self.viewer, self.next = viewer, first
        self.boxes: list[tuple[int, int]] = []

    def take(self, message: dict[str, Any]) -> None:
        first, row, start = (message[name][0] for name in ("first", "row", "start"))
        skip = self.next - first
        if skip < 0:
            data = {"page": ["live"], "next": [self.next], "lines": [0], "layers": [1]}
            self.viewer._hear("data", None, data | {"missing": [True]})
        elif skip < len(row):
            self.boxes += zip(row[skip:].tolist(), start[skip:].tolist(), strict=True)
            self.next = first + len(row)


def a_run(collector: Collector, folder: Path, *, alive: bool = True) -> Run:
    return Run(collector, alive=lambda: alive, end=collector.close, folder=folder)


def feed(run: Run, collector: Collector, path: Path) -> None:
    """All of a recording, at once."""
    with collector.lock:
        for batch in batches(path):
            collector.growing.add(batch)
    for _ in range(6):
        run._look()


def snapshot(run: Run) -> Snapshot:
    """One that is newer than all others."""
    run._snapshot()
    assert run.latest is not None
    return run.latest


def visit(viewer: Viewer, name: str) -> None:
    """What the server does when the browser shows another page."""
    viewer._hear("data", None, {"page": [name]})
