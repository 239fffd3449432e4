"""Recordings made by hand of what processes were seen doing: milliseconds of one clock."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

from bokeh.models.text import PlainText

from findings.workers import Workers
from replay.handmade import CLIENT, SCHEDULER, ns
from stageprof_runtime.event import SAMPLE, SPAN, STACK, Place
from stageprof_runtime.stage import STEP
from stageprof_ui.canvas import Stock
from stageprof_ui.store import Store

#: Texts that somebody could put into a recording, and that no page may act on.
HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    "{{ 7 * 7 }} <%= 7 * 7 %>",
    "@name{safe} $name $$\\alpha$$",
    "\u202egnp.exe\x1b[31m",
)


def acting(view: Callable[[Store, Stock], Any]) -> list[str]:
    """What a view makes of `hostile` that is HTML; not what is drawn, where nothing is HTML."""
    store = Store(hostile().recording(1000))
    models = view(store, store.stock()).get_root().references()
    said = [m for m in models if not isinstance(m, PlainText)]
    found = [unescape(str(getattr(m, name, ""))) for m in said for name in ("text", "object")]
    return [text for text in found if "<img" in text or "<script" in text]


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
    return made
