"""Steps `data.transfer` and `connect`: what a worker fetches from another, and new connections.

What a worker serves is marked for the probe of serialization, so that a dump is known to be data
for another worker or a result on its way to the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import exchange
from stageprof_runtime.patch import Emit, Undo, replace, replace_item, together
from stageprof_runtime.stage import STEP

#: An operation's arguments name who asks only where a worker asks; results go to "".
RESULT = ("result", "")


def install(emit: Emit) -> Undo:
    """Time the fetching of dependencies, and connecting."""
    return together(
        [
            replace(*place("worker.gather_dep"), lambda f: _gather_dep(emit, f)),
            replace(*place("core.connect"), lambda f: _connect(emit, f)),
        ]
    )


@dataclass(frozen=True)
class Serving:
    """A probe: marks what one worker serves; its handlers are bound when it starts."""

    worker: Any

    def __call__(self, emit: Emit) -> Undo:
        """Mark what is asked of this worker from now on."""
        return replace_item(self.worker.handlers, "get_data", _get_data)


def _gather_dep(emit: Emit, gather_dep: Callable[..., Any]) -> Callable[..., Any]:
    async def timed(self: Any, worker: str, to_gather: Any, total_nbytes: int, **kw: Any) -> Any:
        token = exchange.set(("data", worker))
        start = now_ns()
        try:
            return await gather_dep(self, worker, to_gather, total_nbytes, **kw)
        finally:
            emit.span("worker", STEP["data.transfer"], start, now_ns(), worker, total_nbytes)
            exchange.reset(token)

    return timed


def _get_data(get_data: Callable[..., Any]) -> Callable[..., Any]:
    async def marked(comm: Any, keys: Any, who: str | None = None, **kwargs: Any) -> Any:
        token = exchange.set(("data", who) if who else RESULT)
        try:
            return await get_data(comm, keys=keys, who=who, **kwargs)
        finally:
            exchange.reset(token)

    return marked


def _connect(emit: Emit, connect: Callable[..., Any]) -> Callable[..., Any]:
    async def timed(addr: str, *args: Any, **kwargs: Any) -> Any:
        start = now_ns()
        try:
            return await connect(addr, *args, **kwargs)
        finally:
            emit.span("worker", STEP["connect"], start, now_ns(), addr)

    return timed
