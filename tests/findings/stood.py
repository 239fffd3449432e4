"""Recordings made by hand of processes that stand still: milliseconds of one clock."""

from __future__ import annotations

from replay.handmade import CLIENT, SCHEDULER, HandMade, ns
from stageprof_runtime.event import SAMPLE, Place


class Stood(HandMade):
    """Workers, and samples of what stopped them or their loops."""

    def said(self, place: Place | int, at: float, name: str, value: float) -> None:
        """A place (a worker by its number) says a number."""
        where = self._workers[place] if isinstance(place, int) else place
        self._rows[where].append((SAMPLE, ns(at), name, float(value)))

    def collected(self, place: Place | int, start: float, stop: float) -> None:
        """The garbage collector stopped a process."""
        self.said(place, stop, "gc.pause_s", (stop - start) / 1e3)

    def stalled(self, place: Place | int, start: float, stop: float) -> None:
        """An event loop could do nothing."""
        self.said(place, stop, "loop.stall_s", (stop - start) / 1e3)


def chain(made: HandMade, runs: int, each: float, gap: float = 0.0, worker: int = 0) -> float:
    """Runs one after another on one worker, each needing the one before; when the last ended."""
    graph = made.graph(0, 0, 0)
    now, last = 0.0, -1
    for i in range(runs):
        start = now + gap
        cause = -1 - graph if i == 0 else last
        last = made.run(worker, start, start + each, cause=cause, wanted=i == runs - 1)
        now = start + each
    made.wait(0, now, last, now)
    return now


__all__ = ["CLIENT", "SCHEDULER", "Stood", "chain"]
