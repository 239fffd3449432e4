"""Tasks by their keys, where these are too many to be sent to a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_ui.columns.timeline import MOST_LAYERS, labels, present_threads

#: Keys that are read at a time: some 40 ms of work.
_AT_ONCE: Final = 20_000
#: Tasks that are told; so many say that the text should say more.
MOST: Final = 10


@dataclass(frozen=True)
class Match:
    """A task whose key holds the text.

    Attributes:
        key, thread: safe to show; the thread is called as in the time line.
        start_s, took_s: seconds, the start since that of the recording.
        layer: its number in `Boxes.layers`.
    """

    key: str
    thread: str
    start_s: float
    took_s: float
    layer: int


@dataclass(frozen=True)
class Found:
    """How far a search is.

    Attributes:
        looked: tasks whose keys were read.
        tasks: all of them.
        matches: the first of those that were found, the earliest first.
        more: whether others were found, too; nothing is looked for after that.
    """

    looked: int
    tasks: int
    matches: Sequence[Match]
    more: bool = False


def search(recording: Recording, text: str) -> Iterator[Found]:
    """Tasks whose key holds a text, whatever its case; told again after some keys each."""
    wanted, runs = text.strip().lower(), recording.timeline.runs
    keys, real = runs["key"], ran(runs)
    threads = Threads(recording)
    matches: list[Match] = []
    for first in range(0, len(keys), _AT_ONCE):
        texts = recording.store.keys(keys[first : first + _AT_ONCE])
        found = [first + i for i, key in enumerate(texts) if wanted in key.lower()]
        some = [run for run in found if real[run]][: MOST + 1]
        matches += [_match(recording, threads, run, texts[run - first]) for run in some]
        more = len(matches) > MOST
        told = sorted(matches[:MOST], key=lambda match: match.start_s)
        yield Found(int(real[: first + _AT_ONCE].sum()), int(real.sum()), told, more)
        if more:
            return


class Threads(dict[int, list[int]]):
    """The threads of each worker, found when they are first asked for."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self._recording, self._labels = recording, labels(recording)

    def __missing__(self, worker: int) -> list[int]:
        timeline = self._recording.timeline
        found = present_threads(timeline.runs["thread"][timeline.at.of(worker)])
        return self.setdefault(worker, found)

    def name(self, worker: int, thread: int) -> str:
        """A thread as it is called in the time line."""
        if worker < 0:
            return "unknown"
        number = f", thread {self[worker].index(thread) + 1}" if thread in self[worker] else ""
        return self._labels[worker] + number


def _match(recording: Recording, threads: Threads, run: int, key: str) -> Match:
    runs, began = recording.timeline.runs, recording.timeline.region.start
    start, stop, worker = (int(runs[name][run]) for name in ("start", "stop", "wplace"))
    return Match(
        safe(key, limit=200),
        threads.name(worker, int(runs["thread"][run])),
        (start - began) / 1e9,
        (stop - start) / 1e9,
        min(int(recording.groups.of_run[run]), MOST_LAYERS),
    )


def shown(match: Match) -> dict[str, Any]:
    """What "show me" selects: the task's layer, and its time with as much on either side."""
    around = max(match.took_s, 1e-6)
    start, stop = match.start_s - around, match.start_s + match.took_s + around
    return {"layers": [match.layer], "start": start, "stop": stop}
