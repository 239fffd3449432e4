"""Data that the user scatters: which objects these are, and where they have them from.

Whoever scatters the same object again sends all of it again.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from stageprof_runtime.budget import Budget
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.event import FETCHED, SCATTER, SCATTERED
from stageprof_runtime.fetched import fetched
from stageprof_runtime.holding import LEAST
from stageprof_runtime.kinds import title
from stageprof_runtime.lines import user_line
from stageprof_runtime.names import Known, Names
from stageprof_runtime.naming import UNKNOWN, find
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.scopes import Stack
from stageprof_runtime.weight import weigh

#: Objects told of in one call.
MOST: Final = 100


def install(emit: Emit) -> Undo:
    """Tell of each large object that a client scatters from now on."""
    scatters = Scatters(emit)
    return together([replace(*place("client.scatter"), scatters.wrap), scatters.names.clear])


class Scatters:
    """What is known of the objects that were scattered, within a budget of time."""

    def __init__(self, emit: Emit) -> None:
        self.names = Names()
        self._emit = emit
        self._budget = Budget([0, 0])

    def wrap(self, scatter: Callable[..., Any]) -> Callable[..., Any]:
        """`Client.scatter`, whose data are looked at."""

        def told(client: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
            start = now_ns()
            if self._budget.left(start) > 0:
                self._tell(data, start, sys._getframe(1))
                self._budget.spend(now_ns() - start)
            return scatter(client, data, *args, **kwargs)

        return told

    def _tell(self, data: Any, t: int, caller: FrameType) -> None:
        stack = Stack(caller)
        try:
            for value in _values(data):
                nbytes = weigh(value)
                if nbytes >= LEAST:
                    known = self._known(value, stack)
                    row = (SCATTER, t, known.number, title(type(value)), *known.origin)
                    self._emit.row("client", (*row, *user_line(caller), nbytes))
                    if known.key is not None:
                        self._emit.row("client", (FETCHED, known.number, SCATTERED, known.key))
        finally:
            stack.clear()

    def _known(self, value: object, stack: Stack) -> Known:
        known = self.names.get(value)
        if known is not None:
            return known
        key = fetched.key_of(value)
        return self.names.keep(value, find(value, stack) or UNKNOWN, key=key)


def _values(data: Any) -> list[Any]:
    """What of it becomes a future of its own."""
    if type(data) is dict:
        return list(itertools.islice(data.values(), MOST))
    if type(data) in (list, tuple, set, frozenset):
        return list(itertools.islice(data, MOST))
    return [data]
