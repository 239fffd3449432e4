"""What a computation reads and does not use: its optimized plan is looked through once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.event import UNUSED
from stageprof_runtime.patch import Emit, Undo, replace
from stageprof_runtime.plan import unused


def install(emit: Emit) -> Undo:
    """Look through what the outermost `optimize()` on each thread returns."""
    return replace(*place("expr.optimize"), lambda f: _optimize(emit, f))


def _optimize(emit: Emit, optimize: Callable[..., Any]) -> Callable[..., Any]:
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        plan = optimize(self, *args, **kwargs)
        if not inside.optimizing:
            t = now_ns()
            for row in unused(plan):
                emit.row("client", (UNUSED, t, *row))
        return plan

    return seen
