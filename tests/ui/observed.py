"""Recordings made by hand of what processes were seen doing: milliseconds of one clock."""

from __future__ import annotations

import itertools

import numpy as np

from findings.workers import LOOP, Workers
from replay.handmade import CLIENT, SCHEDULER, ns
from stageprof_runtime.event import HOLD, MARK, SAMPLE, SPAN, STACK, STOOD, Place
from stageprof_runtime.stage import STEP

#: Texts that somebody could put into a recording, and that no page may act on.
HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    "{{ 7 * 7 }} <%= 7 * 7 %>",
    "@name{safe} $name $$\\alpha$$",
    "\u202egnp.exe\x1b[31m",
)


class Observed(Workers):
    """Workers with samples, transfers, and looks at their tasks."""

    def sample(self, at: float, name: str, value: float, worker: int | None = None) -> None:
        """A number of a worker, or of the scheduler."""
        self._rows[self._place(worker)].append((SAMPLE, ns(at), name, float(value)))

    def sent(self, sender: int, receiver: int, start: float, stop: float, nbytes: int) -> None:
        """A worker fetched results of another."""
        name = self._workers[sender].name
        row = (SPAN, STEP["data.transfer"], ns(start), ns(stop), 0, name, nbytes)
        self._rows[self._workers[receiver]].append(row)

    def look(
        self, prefix: str, entry: str, line: str, how: str, ms: float, worker: int | None = 0
    ) -> None:
        """A task was seen there for so long."""
        place = CLIENT if worker is None else self._workers[worker]
        row = (STACK, ns(1), prefix, line, how, entry, 1, round(ms * 1e6))
        self._rows[place].append(row)

    def used(self, run: int, cpu_ms: float) -> None:
        """A run used so much of a processor."""
        for rows in self._rows.values():
            for i, row in enumerate(rows):
                if row[0] == 3 and row[1] == run:
                    rows[i] = (*row[:7], round(cpu_ms * 1e6), row[8])

    def held(self, worker: int, start: float, stop: float, thread: int = 0) -> None:
        """A thread that runs tasks was seen to hold the GIL."""
        self._turn(worker, start, stop, thread, waits=0)

    def waited(self, worker: int, start: float, stop: float, thread: int = 0) -> None:
        """The same of one that waited for it; thread -1 is the event loop."""
        self._turn(worker, start, stop, thread, waits=1)

    def _turn(self, worker: int, start: float, stop: float, thread: int, *, waits: int) -> None:
        row = (HOLD, ns(start), ns(stop), self._ident(worker, thread), waits)
        self._rows[self._workers[worker]].append(row)

    def stood(self, worker: int, start: float, stop: float, line: str, thread: int = 0) -> None:
        """py-spy saw where a thread held it."""
        row = (STOOD, ns(start), ns(stop), self._ident(worker, thread), -1, line)
        self._rows[self._workers[worker]].append(row)

    def said(self, worker: int, name: str, label: str) -> None:
        """What a worker's watch told."""
        self._rows[self._workers[worker]].append((MARK, ns(0), name, label))

    @staticmethod
    def _ident(worker: int, thread: int) -> int:
        return LOOP if thread < 0 else 100 * worker + thread + 1

    def named(self, worker: int, name: str) -> None:
        """A worker is called so."""
        rows, place = self._rows[SCHEDULER], self._workers[worker]
        for i, row in enumerate(rows):
            if row[2:3] == ("worker seen",) and str(row[3]).startswith(f"{place.name} "):
                rows[i] = (*row[:3], f"{place.name} 1 0 {name}")

    def _place(self, worker: int | None) -> Place:
        return SCHEDULER if worker is None else self._workers[worker]


def hostile() -> Observed:
    """Every text that can be is one of an enemy's."""
    made = Observed(len(HOSTILE))
    graph = made.graph(0, 0, 0)
    for worker, text in enumerate(HOSTILE):
        made.named(worker, text)
        for at in (0, 500, 1000):
            made.took(worker, at, 100 + worker, 50)
            made.sample(at, "gil.contention", 0.1 * worker, worker)
        made.look(text, text, f"/u/{text}:3 {text}", text, 500, worker)
        made.look(text, text, text, "library", 300, worker)
        made.sent(worker, (worker + 1) % len(HOSTILE), 0, 100, 10_000_000)
        made.run(worker, 0, 900, cause=-1 - graph, key=(text, worker))
        made.held(worker, 0, 400)
        made.waited(worker, 400, 900)
        made.held(worker, 400, 900, thread=-1)
        made.stood(worker, 0, 900, f"/u/{text}:3 {text}")
        made.said(worker, "gil source", text if worker else f"ticker: {text}")
        made.said(worker, "gil holders", text)
        made.said(worker, "thread", f"{100 * worker + 1} {text}")
    return made


def contended(source: str = "watch") -> Observed:
    """Two threads of a worker for two seconds: one waits for `spin`, then the other for it.

    Thread 0 holds the GIL for 1.2 s of it and waits for 0.6 s, thread 1 the other way round; the
    event loop waits for 0.5 s.
    """
    made = Observed(1)
    graph = made.graph(0, 0, 0)
    for thread, key in enumerate(("spin-1", "tally-2")):
        run = made.run(0, 0, 2000, cause=-1 - graph, key=key, thread=thread, wanted=True)
        made.used(run, 1200 if thread == 0 else 600)
    made.wait(0, 2000, run, 2000)
    for thread, (line, first) in enumerate((("/u/etl.py:24 spin", 0), ("/u/etl.py:7 tally", 1200))):
        made.stood(0, 0, 2000, line, thread)
        made.held(0, first, first + (600 if thread else 1200), thread)
    made.waited(0, 0, 600, thread=1)
    made.waited(0, 1200, 1800, thread=0)
    made.waited(0, 100, 600, thread=-1)
    for at in (500, 1000, 1500, 2000):
        made.sample(at, "gil.contention", 0.9, worker=0)
        made.sample(at, "gil.waiting", 0.6, worker=0)
    made.said(0, "gil source", source)
    return made


def turns() -> Observed:
    """Two workers of two threads each; of the second one nothing is known."""
    made, random = Observed(2), np.random.default_rng(3)
    graph, run = made.graph(0, 0, 0), 0
    for at in range(0, 2000, 200):
        for worker, thread in itertools.product((0, 1), (0, 1)):
            key = f"{'spin' if at % 600 else 'tally'}-{at}{worker}{thread}"
            run = made.run(
                worker, at, at + 190, cause=-1 - graph, key=key, thread=thread, wanted=True
            )
    made.wait(0, 2000, run, 2000)
    edges = np.sort(random.integers(100_000, 2_000_000, 400)) / 1e3
    for start, stop, who in zip(edges[:-1], edges[1:], random.integers(0, 3, 399), strict=True):
        for thread in (0, 1):
            if who == thread:
                made.held(0, start, stop, thread)
            elif who < 2:
                made.waited(0, start, stop, thread)
    made.stood(0, 100, 2000, "/u/etl.py:24 spin")
    made.said(0, "gil source", "watch")
    for at in (600, 1000, 1500, 2000):
        made.sample(at, "gil.contention", 0.9, worker=0)
        made.sample(at, "gil.waiting", 0.6, worker=0)
    return made
