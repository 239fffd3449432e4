"""The graphs that a scheduler takes in: what each is called, and how much of it there is.

A graph is taken in by a coroutine, and several may be on their way at once. What the hook says that
the coroutine calls is for the graph that it is at.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import GRAPH, NO_CAUSE
from stageprof_runtime.ring import Ring

#: [number, tasks, keys wanted] of the graph that the coroutine is taking in, by session
_graph: ContextVar[dict[str, list[int]]] = ContextVar("stageprof_graph", default={})  # noqa: B039

#: The number of a graph that was on its way in when the session began: it is nobody's cause.
UNSEEN: Final = -1 - NO_CAUSE


class Graphs:
    """Those of one scheduler for one session, numbered from 0."""

    def __init__(self, session: str, scheduler: Any, ring: Ring) -> None:
        self._session = session
        self._scheduler = scheduler
        self._ring = ring
        self._next = 0

    def timed(self, update_graph: Any) -> Any:
        """The scheduler's coroutine that takes a graph in, which emits a row for each."""

        @functools.wraps(update_graph)
        async def timed(*args: Any, **kwargs: Any) -> Any:
            start = now_ns()
            number, self._next = self._next, self._next + 1
            facts = [number, 0, 0]
            token = _graph.set(_graph.get() | {self._session: facts})
            parent = self._run_of(kwargs.get("submitting_task"))
            try:
                return await update_graph(*args, **kwargs)
            finally:
                _graph.reset(token)
                client = str(kwargs.get("client", ""))
                self._ring.emit((GRAPH, number, start, now_ns(), *facts[1:], client, parent))

        return timed

    def _run_of(self, key: Any) -> int:
        task = self._scheduler.tasks.get(key) if key is not None else None
        return -1 if task is None or task.run_id is None else int(task.run_id)


def holds(tasks: int) -> None:
    """Note for all sessions of how many tasks the graph is that is being taken in here."""
    for facts in _graph.get().values():
        facts[1] = tasks


def taken(session: str) -> list[int]:
    """The graph that is being taken in here: number, tasks (0: not told), and keys to be noted."""
    return _graph.get().get(session) or [UNSEEN, 0, 0]
