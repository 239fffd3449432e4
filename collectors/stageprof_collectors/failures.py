"""What failed in a run: tasks that raised, those that were run again, and the program itself.

How many is the schedulers' word; which exception it was and where is that of marks, of which there
is a limited number. What exceptions say is in no recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from stageprof_collectors.account.timeline import Columns, Ints, Timeline
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.storage.layered import Layered
from stageprof_collectors.text import line_of, number, safe
from stageprof_runtime.ending import KINDS, RAISED
from stageprof_runtime.event import STATUS
from stageprof_runtime.probes.failure import NAME, part

_ERRED: Final = STATUS.index("erred")
#: A mark is put down right after its task ended; on a busy machine that may be this much later, ns.
_AFTER: Final = 1_000_000_000
#: Exceptions that a sentence names.
_NAMED: Final = 2
#: Characters of them that are shown.
_MOST: Final = 300


class Raised(NamedTuple):
    """What a task raised: its prefix, the exception's type, and where, as far as is known."""

    type: str
    prefix: str
    file: str = ""
    line: int = 0

    @property
    def said(self) -> str:
        """In a few words: `ValueError, fetch at etl.py:41`."""
        return ", ".join(filter(None, (self.type, self.prefix + made_at(self.file, self.line))))


class Ended(NamedTuple):
    """An exception left the region, which was a program, a block, a function or a cell."""

    what: str
    type: str
    #: the exit status that it asked for; None for all other exceptions
    status: int | None

    @property
    def said(self) -> str:
        """In a few words: `the program ended with ValueError`."""
        if self.type == "KeyboardInterrupt":
            return f"the {self.what} was interrupted (Ctrl-C)"
        if self.status is not None:
            return f"the {self.what} ended with exit status {self.status}"
        return f"the {self.what} ended with {self.type or 'an exception'}"


class Failures:
    """What failed in a recording; rows are those of `Timeline.runs`."""

    def __init__(self, timeline: Timeline, layered: Layered) -> None:
        self._t = timeline
        self._layered = layered

    def __repr__(self) -> str:
        return f"<Failures: {safe('; '.join(self.said) or 'none', limit=_MOST)}>"

    @cached_property
    def rows(self) -> Ints:
        """Runs that raised, or were given up."""
        return np.flatnonzero(self._t.runs["status"] == _ERRED)

    @cached_property
    def again(self) -> list[bool]:
        """Of each of them, whether its key was run once more."""
        return run_again(self._t, self.rows)

    @cached_property
    def raised(self) -> dict[int, Raised]:
        """What each of them raised, as far as that is known, by its row."""
        left = self._marks()
        found: dict[int, Raised] = {}
        for row, process, prefix, t in sorted(self._ends(), key=lambda end: end[3]):
            marks = left.get((process, prefix), [])
            while marks and marks[-1][0] < t:
                marks.pop()
            if marks and marks[-1][0] <= t + _AFTER:
                found[row] = marks.pop()[1]
        return found

    @property
    def failed(self) -> list[int]:
        """Rows of tasks that failed for good."""
        return [row for row, more in zip(self.rows.tolist(), self.again, strict=True) if not more]

    @property
    def retried(self) -> list[int]:
        """Rows of runs that failed, and whose task was run again."""
        return [row for row, more in zip(self.rows.tolist(), self.again, strict=True) if more]

    @cached_property
    def ended(self) -> Ended | None:
        """How the region ended, if an exception left it."""
        region = self._t.region
        for t, place, label in self._t.marks(RAISED):
            parts = label.split("\t")
            if len(parts) == 3 and place == region.place and region.start <= t <= region.stop:
                what, name, status = parts
                return Ended(what if what in KINDS else "run", name, _status(status))
        return None

    def kinds(self, rows: list[int]) -> list[tuple[Raised, int]]:
        """What was raised in some rows, and how often; most first."""
        prefixes, of = self._layered.prefixes, self._layered.of
        unknown = (Raised("", prefixes[of[row]]) for row in rows if row not in self.raised)
        known = (self.raised[row] for row in rows if row in self.raised)
        seen = Counter(known)
        named = {raised.prefix for raised in seen}
        seen.update(raised for raised in unknown if raised.prefix not in named)
        return seen.most_common()

    @property
    def said(self) -> tuple[str, ...]:
        """A sentence on tasks and one on the program; none where nothing failed."""
        ended = self.ended
        return tuple(filter(None, (self._of_tasks(), ended.said if ended else "")))

    def _of_tasks(self) -> str:
        failed, retried = self.failed, self.retried
        again = f"{count(len(retried), 'run')} {'was' if len(retried) == 1 else 'were'} retried"
        if failed:
            first = f"{count(len(failed), 'task')} failed{self._named(failed)}"
            return f"{first}, {again}" if retried else first
        return f"{again} after {_a_failure(retried)}{self._named(retried)}" if retried else ""

    def _named(self, rows: list[int]) -> str:
        kinds = [raised.said for raised, _ in self.kinds(rows)]
        more = [f"{len(kinds) - _NAMED:,} more"] if len(kinds) > _NAMED else []
        return f" ({'; '.join(kinds[:_NAMED] + more)})" if kinds else ""

    # -- which mark is of which run -----------------------------------------------------------

    def _marks(self) -> dict[tuple[object, str], list[tuple[int, Raised]]]:
        """Marks by process and prefix, the first one last."""
        found: dict[tuple[object, str], list[tuple[int, Raised]]] = {}
        for t, place, name, prefix, where in told(self._t):
            one = Raised(name, prefix, *line_of(where))
            found.setdefault((self._process(place), prefix), []).append((t, one))
        for marks in found.values():
            marks.reverse()
        return found

    def _ends(self) -> list[tuple[int, object, str, int]]:
        """Of each row its process, its prefix, and when it ended there, ns."""
        runs: Columns = self._t.runs
        found = []
        for row in self.rows.tolist():
            told = runs["seen"][row] and runs["wplace"][row] >= 0
            place, t = ("wplace", "stop") if told else ("place", "finished")
            prefix = self._layered.prefixes[self._layered.of[row]]
            process = self._process(int(runs[place][row]))
            found.append((row, process, part(prefix), int(runs[t][row])))
        return found

    def _process(self, place: int) -> object:
        """Which process a place is in: several may be in one, and older recordings told of one."""
        known = self._t.store.places[place]
        return known.host, known.pid


def told(timeline: Timeline) -> Iterator[tuple[int, int, str, str, str]]:
    """What tasks raised, as marks say it: when, place, type, prefix, and "file:line" or ""."""
    for t, place, label in timeline.marks(NAME):
        parts = label.split("\t")
        if len(parts) == 3:
            name, prefix, where = parts
            yield t, place, name, prefix, where


def run_again(timeline: Timeline, rows: Ints) -> list[bool]:
    """Of some runs, whether their keys were run once more."""
    if not len(rows):
        return []
    keys = timeline.store.keys(timeline.runs["key"])
    last = {key: row for row, key in enumerate(keys)}
    return [last[keys[row]] > row for row in rows.tolist()]


def _a_failure(rows: list[int]) -> str:
    return "a failure" if len(rows) == 1 else "failures"


def _status(text: str) -> int | None:
    known = number(text.removeprefix("-"))
    return None if known < 0 else -known if text.startswith("-") else known


__all__ = ["Ended", "Failures", "Raised", "run_again", "told"]
