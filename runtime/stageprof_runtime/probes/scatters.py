"""Data that the user scatters: which objects these are, and where they have them from.

Whoever scatters the same object again sends all of it again.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.event import SCATTER
from stageprof_runtime.holding import LEAST
from stageprof_runtime.kinds import title
from stageprof_runtime.lines import user_line
from stageprof_runtime.names import Names
from stageprof_runtime.naming import UNKNOWN, find
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.scopes import Stack
from stageprof_runtime.weight import weigh

#: Objects told of in one call.
MOST: Final = 100


def install(emit: Emit) -> Undo:
    """Tell of each large object that a client scatters from now on."""
    names = Names()
    scatter = replace(*place("client.scatter"), lambda f: _scatter(emit, names, f))
    return together([scatter, names.clear])


def _scatter(emit: Emit, names: Names, scatter: Callable[..., Any]) -> Callable[..., Any]:
    def told(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        _tell(emit, names, data, sys._getframe(1))
        return scatter(self, data, *args, **kwargs)

    return told


def _tell(emit: Emit, names: Names, data: Any, caller: FrameType) -> None:
    t, stack = now_ns(), Stack(caller)
    try:
        for value in _values(data):
            nbytes = weigh(value)
            if nbytes >= LEAST:
                known = names.get(value) or names.keep(value, find(value, stack) or UNKNOWN)
                row = (SCATTER, t, known.number, title(type(value)), *known.origin)
                emit.row("client", (*row, *user_line(caller), nbytes))
    finally:
        stack.clear()


def _values(data: Any) -> list[Any]:
    """What of it becomes a future of its own."""
    if type(data) is dict:
        return list(itertools.islice(data.values(), MOST))
    if type(data) in (list, tuple, set, frozenset):
        return list(itertools.islice(data, MOST))
    return [data]
