"""When clients learn that keys are done: what a blocking call waited for, and until when."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from stageprof_runtime import awaited
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import client_handlers
from stageprof_runtime.event import ARRIVE
from stageprof_runtime.patch import Emit, Undo, replace_item, together

#: Arrivals remembered to find the last one that a call needed.
MOST: Final = 100_000

#: key -> when it arrived, ns
arrived: Final[dict[object, int]] = {}


@dataclass(frozen=True)
class Arrivals:
    """A probe: notes when one client learns that keys are done; handlers are bound at its start."""

    client: Any

    def __call__(self, emit: Emit) -> Undo:
        """Note what arrives from now on."""
        handlers, make = client_handlers(self.client), functools.partial(_arrive, emit)
        ops = ("key-in-memory", "task-erred", "cancelled-keys", "lost-data")
        return together([replace_item(handlers, op, make) for op in ops])


def _arrive(emit: Emit, handler: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        key, t = kwargs.get("key"), now_ns()
        if key is not None:
            if len(arrived) >= MOST:
                arrived.clear()
            arrived[key] = t
            emit.row("client", (ARRIVE, t, key))
        return handler(*args, **kwargs)

    return noted


def last(needs: object, before: int) -> tuple[int, object]:
    """When the last of the keys in `needs` arrived, and which it was; 0 and any key if none did."""
    latest, which = 0, ""
    for key in awaited.keys(needs):
        which = which or key
        t = arrived.get(key, 0)
        if latest < t <= before:
            latest, which = t, key
    return latest, which
