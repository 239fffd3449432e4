"""Which graph each task belongs to, where that does not follow from what led to its run.

A task that stands in line for a thread runs because another's run has ended. While one graph alone
is worked on that is one of its own, so nothing is kept of each task. When a second one comes, the
tasks of both are noted, until nothing is left to do.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any, Final

#: Notes of fewer tasks than this are never looked through.
_FEW: Final = 10_000


class Belonging:
    """The graphs that one scheduler is working on. Called on its loop only."""

    def __init__(self) -> None:
        #: key -> number of the graph that brought it; None while that follows from its cause
        self.of: dict[Any, int] | None = None
        #: the graph of all other keys; -1 where they came before the session, None if any
        self.others: int | None = None
        #: the graph that is worked on alone, and the keys that it brought
        self._alone: tuple[int, list[Any]] | None = None
        #: notes of so many tasks are looked through for those that are forgotten
        self._many = _FEW

    def took(self, scheduler: Any, graph: int, keys: Any) -> int:
        """A graph's tasks are there, and none of them has been begun; how many it brought.

        Args:
            scheduler: that of Dask.
            graph: its number; -1 if that is not known.
            keys: its tasks, and those that they need: some were there before it.
        """
        tasks = scheduler.tasks
        # What it needs of earlier graphs is under way, or has a result.
        brought = [key for key in keys if tasks[key].state == "released"]
        if is_idle(scheduler):
            self.of = self.others = None
            self._alone = graph, brought
        else:
            self._note(tasks, graph, brought)
        return len(brought)

    def rest(self, scheduler: Any) -> None:
        """Let go of the keys if nothing is left to do; to be called now and then."""
        if (self._alone or self.of) and is_idle(scheduler):
            self.of = self.others = self._alone = None

    def _note(self, tasks: Any, graph: int, keys: list[Any]) -> None:
        if self.of is None:
            before, self._alone = self._alone, None
            self.others = -1 if before is None else None
            self.of = dict.fromkeys(before[1], before[0]) if before else {}
            self._many = max(_FEW, 2 * (len(self.of) + len(keys)))
        self.of.update(zip(keys, repeat(graph)))
        if len(self.of) > self._many:
            self.of = {key: number for key, number in self.of.items() if key in tasks}
            self._many = max(_FEW, 2 * len(self.of))


def is_idle(scheduler: Any) -> bool:
    """Whether a scheduler has nothing to do; Dask's own `is_idle` asks all groups of tasks."""
    if scheduler.queued or scheduler.unrunnable:
        return False
    return not any(worker.processing for worker in scheduler.workers.values())
